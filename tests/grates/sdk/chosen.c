/* Prints what geteuid and getppid return. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	return printf("%u %d\n", geteuid(), getppid()) < 0 || getpid() < 0;
}
