/* The program that the runner's `startup` entry starts in a cage. */
#include <stdio.h>

int main(void)
{
	puts("hello");
	return 0;
}
