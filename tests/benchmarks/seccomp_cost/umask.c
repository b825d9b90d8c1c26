/* The time of umask, a call that the kernel answers without asking the host for anything. */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOPS 2000000

int main(int argc, char **argv)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < LOOPS; i++)
		syscall(SYS_umask, 022);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%s\t%.1f ns\n", argc > 1 ? argv[1] : "",
	    ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / LOOPS);
	return 0;
}
