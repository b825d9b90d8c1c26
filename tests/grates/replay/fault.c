#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sigjmp_buf before;

static void on_fault(int number)
{
	(void)number;
	write(1, "handled\n", 8);
	siglongjmp(before, 1);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_fault };

	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(before, 1))
		*(volatile int *)0xf0000000 = 1;
	puts("after");
	return 0;
}
