# Functions that call setjmp are compiled so that a handler may jump into the one that was
# interrupted, however they are compiled.
top=$(dirname "$(dirname "$(dirname "$CASES")")")
[ -x "$top/target/release/lind-boot" ] || { echo "lind-boot is not built"; exit 77; }
cat >probe.c <<'END'
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static sigjmp_buf back;
static void jump(int sig) { siglongjmp(back, sig); }
struct pair { int a, b; char c[60]; };
static int reads(struct pair *p, int n) { int came = sigsetjmp(back, 1); return came ? came : (int)(p[n].a / p[n].b); }
static int copies(struct pair *to, struct pair *from) { int came = sigsetjmp(back, 1); if (!came) *to = *from; return came; }
static int clears(char *to, int n) { int came = sigsetjmp(back, 1); if (!came) memset(to, n, n); return came; }
int main(void)
{
	struct pair *none = mmap(0, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), one = { 6, 0, "" };
	int signals[] = { SIGSEGV, SIGFPE };
	for (int i = 0; i < 2; i++)
		signal(signals[i], jump);
	printf("%d %d ", reads(none, 3), reads(&one, 0));
	one.b = 2;
	printf("%d %d %d %d\n", reads(&one, 0), copies(&one, none), copies(none, &one), clears((char *)none, 70));
	return 0;
}
END

cat >probe.cpp <<'END'
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
static sigjmp_buf back;
static void jump(int sig) { siglongjmp(back, sig); }
struct pair { int a, b; };
struct guard { int *left; ~guard() { ++*left; } };
static int left_behind;
void may_throw(int x);
static int guarded(pair *p, int n)
{
	guard on_return{&left_behind};
	int came = sigsetjmp(back, 1);
	if (came)
		return came;
	may_throw(n);
	return p[n].a / p[n].b;
}
static int before_try(pair *p, int n)
{
	volatile int caught = 0;
	int came = sigsetjmp(back, 1);
	if (came)
		return came + 100 * caught;
	try {
		may_throw(n);
		caught = 7;
		may_throw(p[n].a);
	} catch (int x) {
		for (int i = 0; i <= x; i++)
			caught = i;
	}
	return p[n].a / p[n].b + 1000 * caught;
}
static int in_try(pair *p, int n)
{
	try {
		int came = sigsetjmp(back, 1);
		if (came)
			return came;
		may_throw(n);
		return p[n].a;
	} catch (...) {
		return 77;
	}
}
int main()
{
	pair *none = (pair *)mmap(0, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), one = { 6, 2 };
	signal(SIGSEGV, jump), signal(SIGFPE, jump);
	printf("%d ", guarded(none, 0));
	printf("%d ", guarded(&one, 0));
	printf("%d ", left_behind);
	printf("%d ", before_try(none, 0));
	printf("%d ", before_try(&one, 0));
	one.b = 0;
	printf("%d ", before_try(&one, 0));
	printf("%d ", in_try(none, 0));
	printf("%d %d\n", in_try(&one, 0), in_try(&one, 9));
	return 0;
}
END
echo 'void may_throw(int x) { if (x > 5) throw x; }' >throws.cpp

set -x
for flags in "" -O0 -O1 "-O2 -g" -O3 -Os "-O2 -flto" "-O1 -std=gnu99 -fno-builtin"; do
	lind-cc $flags probe.c -o whole.wasm
	[ "$(lind_run --root "$PWD" whole.wasm)" = "11 8 3 11 11 11" ]
	rm -f probe.o probe.d
	lind-cc $flags -MMD -MF probe.d -c probe.c
	grep -q 'probe.o: probe.c' probe.d
	lind-cc $flags probe.o -o parts.wasm
	[ "$(lind_run --root "$PWD" parts.wasm)" = "11 8 3 11 11 11" ]
done
lind-cc -O2 -x c -c - -o stdin.o <probe.c
lind-cc stdin.o -o stdin.wasm
[ "$(lind_run --root "$PWD" stdin.wasm)" = "11 8 3 11 11 11" ]
lind-cc -O2 -x c - -o stdin.wasm <probe.c
[ "$(lind_run --root "$PWD" stdin.wasm)" = "11 8 3 11 11 11" ]
# A quoted include is looked for here, and errors name standard input.
echo 'int value = 5;' >value.h
echo '#include "value.h"' | lind-cc -x c -c -
[ -s ./-.o ]
! echo 'int f(' | lind-cc -x c -c - 2>messages
grep -q '^<stdin>:1:' messages
[ "$(ls *.ll 2>/dev/null)" = "" ]

# C++ needs its library, which has a build of its own.
if echo 'int main() { throw 1; }' | lind-c++ -x c++ - -o throws.wasm 2>/dev/null; then
	for flags in -O0 "-O2 -g" "-O2 -flto"; do
		lind-c++ $flags probe.cpp throws.cpp -o cpp.wasm
		[ "$(lind_run --root "$PWD" cpp.wasm)" = "11 3 2 711 6003 608 11 6 77" ]
		lind-c++ $flags -c probe.cpp throws.cpp
		lind-c++ $flags probe.o throws.o -o cpp.wasm
		[ "$(lind_run --root "$PWD" cpp.wasm)" = "11 3 2 711 6003 608 11 6 77" ]
	done
fi

cat >switches.c <<'END'
#include <ucontext.h>
static ucontext_t here;
int main(void) { return getcontext(&here) + setcontext(&here); }
END
! lind-cc switches.c -o switches.wasm 2>messages
grep -q '^note: getcontext, setcontext: WebAssembly code cannot switch stacks' messages
