# Functions that call setjmp are compiled so that a handler may jump into the one that was interrupted, however they are compiled.
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
[ "$(ls *.ll 2>/dev/null)" = "" ]

cat >switches.c <<'END'
#include <ucontext.h>
static ucontext_t here;
int main(void) { return getcontext(&here) + setcontext(&here); }
END
! lind-cc switches.c -o switches.wasm 2>messages
grep -q '^note: getcontext, setcontext: WebAssembly code cannot switch stacks' messages
