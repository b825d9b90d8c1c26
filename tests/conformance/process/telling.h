/* A child that tells its parent numbers of processes: most often those of children of its own. */
#include <sys/wait.h>
#include <unistd.h>

/* Forks. The caller reads from the result what the child and its own children write to `ends`; the
 * end of file comes when all have exited. */
static pid_t fork_telling(int ends[2])
{
	pid_t pid;

	NEED(pipe(ends) == 0);
	pid = fork();
	NEED(pid >= 0);
	close(ends[pid != 0]);
	return pid;
}

static void tell(const int ends[2], pid_t number)
{
	if (write(ends[1], &number, sizeof number) != sizeof number)
		_exit(1);
}

static pid_t hear(const int ends[2])
{
	pid_t number = -1;

	CHECK_EQ(read(ends[0], &number, sizeof number), sizeof number);
	return number;
}

static void hear_no_more(const int ends[2])
{
	close(ends[0]);
}
