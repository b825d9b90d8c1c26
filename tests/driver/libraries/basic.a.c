#include <stdio.h>
int counter = 5;
_Thread_local int own = 3;
static int calls;
const char *const words[] = { "one", "two" };
int helper(int x) { return x + counter; }
int twice(int x)
{
	calls++;
	own++;
	return 2 * helper(x);
}
int called(void) { return calls; }
long long wide(int a, long long b) { return a + b; }
static void __attribute__((constructor)) up(void) { puts("a is up"); }
