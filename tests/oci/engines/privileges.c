/* A program with a set-user-ID bit that says whose rights it has. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	printf("Effective uid: %d\n", (int)geteuid());
	return 0;
}
