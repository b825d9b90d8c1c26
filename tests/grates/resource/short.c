/* Children one after the other that use a fifth of a millisecond each: as many as the argument
 * says, or without end. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	for (int n = 0; argc < 2 || n < atoi(argv[1]); n++) {
		pid_t pid = fork();

		if (pid == 0) {
			long from = used();

			while (used() - from < 200)
				;
			_exit(0);
		}
		if (waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}
