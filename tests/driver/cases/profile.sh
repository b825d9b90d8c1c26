# Profiles: counters are written at a program's end, also by a child that was forked, added up, and
# used. With and without -flto.
top=$(cd "$(dirname "$FETCH")/../.." && pwd)
[ -f "$top/build/sysroot/lib/libclang_rt.profile.a" ] && [ -x "$top/target/release/lind-boot" ] || { echo "not built: make"; exit 77; }

cat >count.c <<'END'
#include <setjmp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static jmp_buf back;
__attribute__((noinline)) static int often(int n) { return n % 3 ? n + 1 : n - 1; }
__attribute__((noinline)) static int never(int n) { return n * 7; }
int main(int argc, char **argv)
{
	(void)argv;
	int total = 0;
	if (!setjmp(back)) {
		for (int i = 0; i < 1000; i++)
			total += often(i);
		longjmp(back, 1);
	}
	pid_t child = fork();
	if (!child)
		return often(1) != 2;
	int status;
	waitpid(child, &status, 0);
	printf("%d %d\n", argc > 5 ? never(total) : 0, status);
	return 0;
}
END

for flags in -O1 "-O2 -flto"; do
	rm -rf "$CAGE/tmp/p"
	lind-cc $flags -fprofile-generate count.c -o "$CAGE/tmp/counting"
	for i in 1 2; do [ "$(lind_run --root "$CAGE" --cwd /tmp -e LLVM_PROFILE_FILE=/tmp/p/%m.profraw /tmp/counting)" = "0 0" ]; done
	llvm-profdata-22 merge -o profile "$CAGE"/tmp/p/*.profraw
	# Two runs of a thousand calls, which a child inherits as on Linux, and of one in the child.
	llvm-profdata-22 show --function=often --counts profile | grep -q "Block counts: \[2666, 1336\]"
	llvm-profdata-22 show --function=never --counts profile | grep -q "Block counts: \[0\]"
	lind-cc $flags -fprofile-use=profile -S -emit-llvm count.c -o - | grep -q "!{!\"function_entry_count\", i64 4002}"
	lind-cc $flags -fprofile-use=profile count.c -o "$CAGE/tmp/quick"
	[ "$(lind_run --root "$CAGE" --cwd /tmp /tmp/quick)" = "0 0" ]
done

# The counters of clang's front end, which tools for coverage read, are written by the same library.
lind-cc -O1 -fprofile-instr-generate -c count.c && lind-cc -fprofile-instr-generate count.o -o "$CAGE/tmp/counting"
lind_run --root "$CAGE" --cwd /tmp /tmp/counting
llvm-profdata-22 merge -o profile "$CAGE/tmp/default.profraw"
llvm-profdata-22 show --function=often profile | grep -q "Function count: 2001"

# Without the library, one line says how to get it.
mkdir -p sysroot/lib && cp "$top/build/sysroot/lib/"*.[ao] sysroot/lib && rm sysroot/lib/libclang_rt.profile.a
cp -r "$top/build/sysroot/include" sysroot
! SYSROOT=$PWD/sysroot lind-cc -fprofile-generate count.c -o no 2>said
grep -q "make profile" said
