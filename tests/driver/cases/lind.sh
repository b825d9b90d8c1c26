# lind_compile, as Lind's users know it.
top=$(dirname "$(dirname "$(dirname "$CASES")")")
[ -x "$top/target/release/lind-boot" ] || { echo "lind-boot is not built"; exit 77; }
LIND_WASM_ROOT=$PWD/home
SYSROOT=$top/build/sysroot
export LIND_WASM_ROOT SYSROOT
mkdir -p home/lindfs src
printf '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n' >src/hi.c

set -x
[ "$(lind_compile -s src/hi.c | tail -n 1)" = "OK: $PWD/home/lindfs/hi.cwasm" ]
[ -f src/hi.wasm ] && [ -f home/lindfs/hi.wasm ]
[ "$(lind-clang --output-dir bin src/hi.c | tail -n 1)" = "OK: $PWD/home/lindfs/bin/hi.cwasm" ]
[ "$(lind_compile src/hi.c -o x.cwasm | tail -n 1)" = "OK: $PWD/x.cwasm" ] && [ -f x.wasm ]
[ "$(lind_run --root "$PWD/home/lindfs" /bin/hi.cwasm)" = hi ]

rm src/hi.wasm
[ "$(lind_compile --compile-only src/hi.c | tail -n 1)" = "OK: $PWD/src/hi.wasm" ]
[ "$(lind_compile --compile-only -o other.wasm src/hi.c | tail -n 1)" = "OK: $PWD/other.wasm" ] && [ -f other.wasm ]
! lind_compile --compile-only -o other.cwasm src/hi.c 2>said && [ ! -e other.cwasm ] && grep -q 'compile-only writes a .wasm file: -o other.cwasm' said
cp src/hi.wasm before
[ "$(lind_compile --opt-only src/hi.wasm | tail -n 1)" = "OK: $PWD/src/hi.wasm" ]
! cmp -s before src/hi.wasm
[ "$(lind_compile --precompile-only --output-dir p src/hi.wasm | tail -n 1)" = "OK: $PWD/home/lindfs/p/hi.cwasm" ]
lind_compile --print-cmd -c src/hi.c -o hi.o 2>&1 | grep -q clang
! lind_compile
! lind_compile --precompile-only src/hi.c
[ "$(lind_compile --compile-library src/hi.c | tail -n 1)" = "OK: $PWD/src/hi.so" ] && lind-ldd src/hi.so
lind_compile --help | grep -q -- --output-dir

# A call through a pointer of another type works as natively, and traps where that is asked for.
cat >src/cast.c <<'END'
#include <stdio.h>
static long long twice(long long x) { return 2 * x; }
int main(void) { int (*volatile f)(int) = (int (*)(int))twice; printf("%d\n", f(21)); return 0; }
END
lind_compile src/cast.c
[ "$(lind_run --root "$PWD/home/lindfs" cast)" = 42 ]
lind_compile --no-fpcast src/cast.c
[ "$(lind_run --root "$PWD/home/lindfs" cast 2>messages || echo "status $?")" = "status 132" ]
grep -q 'indirect call type mismatch' messages

# A program that forks can do so, unless it is linked so that it cannot.
cat >src/forks.c <<'END'
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(5);
	if (pid < 0)
		return puts(errno == ENOSYS ? "ENOSYS" : "another error") < 0;
	waitpid(pid, &status, 0);
	return printf("%d\n", WEXITSTATUS(status)) < 0;
}
END
lind_compile src/forks.c
[ "$(lind_run --root "$PWD/home/lindfs" forks)" = 5 ]
lind_compile --fork=never src/forks.c
[ "$(lind_run --root "$PWD/home/lindfs" forks)" = ENOSYS ]
lind_compile --fork=always src/hi.c
[ "$(lind_run --root "$PWD/home/lindfs" hi)" = hi ]
! lind_compile --fork=perhaps src/hi.c

# A file of the host runs at its place, and sees the files around it.
cat >host.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	FILE *file = fopen("made", "w");
	if (!file || argc < 2)
		return 1;
	fprintf(file, "%s %s\n", argv[1], getenv("HOST_WORD"));
	return fclose(file) || fopen("/etc/hostname", "r") ? 2 : 7;
}
END
lind-cc host.c -o host
status=0
HOST_WORD="two words" lind_run ./host one >out 2>&1 || status=$?
if [ $status = 125 ]; then
	# Wherever the checkout lies, /tmp among the places.
	cat out
	if grep 'where the grates are' out; then exit 1; fi
	echo "no mounts here: files of the host are not tried"
else
	[ $status = 7 ] && [ "$(cat made)" = "one two words" ]
fi
