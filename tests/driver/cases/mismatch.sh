# Tests functions that one file declares otherwise than another defines them: by default they behave
# as on x86-64, and not on request.
top=$(dirname "$(dirname "$(dirname "$CASES")")")
[ -x "$top/target/release/lind-boot" ] || { echo "lind-boot is not built"; exit 77; }
cat >a.c <<'END'
#include <stdio.h>
int f();
long g(int, int);
void h();
double d(double);
int main(void)
{
	printf("%d\n", f(1, 2, 3));
	printf("%ld\n", g(4, 5));
	h(7);
	printf("%.1f\n", d(2.5));
	return 0;
}
END
cat >b.c <<'END'
#include <stdio.h>
int f(int a, int b) { return a * 10 + b; }
long g(int a) { return a + 1; }
int h(int a) { printf("h %d\n", a); return 3; }
double d(double x, int y) { (void)y; return x * 2; }
END
printf '12\n5\nh 7\n5.0\n' >wanted

set -x
for flags in "" "-s" "-O2 -g"; do
	lind-cc $flags a.c b.c -o prog.wasm 2>messages
	grep -q 'function signature mismatch: f' messages && grep -q 'no-fpcast' messages
	lind_run --root "$PWD" prog.wasm >got && cmp got wanted
done
# So are functions of a shared library.
lind-cc -shared b.c -o libb.so
lind-cc a.c libb.so -o prog.wasm 2>messages
lind_run --root "$PWD" prog.wasm >got && cmp got wanted
lind-cc --no-fpcast a.c b.c -o trap.wasm 2>messages
! grep -q 'no-fpcast' messages
! lind_run --root "$PWD" trap.wasm >got 2>messages
grep -q SIGILL messages
