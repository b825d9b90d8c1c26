/* crowd N: N processes make pipes and files all at once, under numbers that they have had before;
 * each seeks 1 in a pipe and 2 in a file. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 40

static void work(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		int pair[2], file;

		if (pipe(pair) || (file = open("/dev/null", O_RDWR)) < 0)
			_exit(1);
		lseek(pair[0], 1, SEEK_SET);
		lseek(file, 2, SEEK_SET);
		close(pair[round % 2]);
		if (dup2(file, pair[round % 2]) < 0)
			_exit(1);
		lseek(pair[round % 2], 2, SEEK_SET);
		lseek(pair[!(round % 2)], 1, SEEK_SET);
		close(pair[0]);
		close(pair[1]);
		close(file);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, wrong = 0, status;

	for (int i = 0; i < n; i++)
		if (!fork())
			work();
	while (wait(&status) > 0)
		wrong |= status;
	return wrong;
}
