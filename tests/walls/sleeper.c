/* Says that it runs, and waits to be ended. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
