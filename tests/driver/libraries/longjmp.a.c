#include <setjmp.h>
static jmp_buf own;
void leave(jmp_buf *to, int value) { longjmp(*to, value); }
int through(void (*call)(void)) { call(); return -1; }
void back(int value) { longjmp(own, value); }
int comes_back(void (*call)(int), int n)
{
	volatile int kept = n;
	int came = setjmp(own);
	if (came)
		return came + kept;
	call(n);
	return -1;
}
