/* Prints its user id, what umask returns for 3, and whether its group id is 7. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
	printf("%d %d %d\n", (int)geteuid(), (int)umask(3), getegid() == 7);
	return 0;
}
