/* Tests vfork: the child runs on its parent's memory, and the parent waits until the child has run
 * a program or ended, however it ends. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;
static char *self;
static volatile int noted;
static char *volatile text;

static int ended(pid_t child)
{
	int status = -1;

	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static int code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void nap(int milliseconds)
{
	struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000L };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void shares(void)
{
	volatile int local = 1;
	char order[4] = "";
	int p[2];
	pid_t child, parent = getpid();

	NEED(pipe(p) == 0);
	noted = 1;
	child = vfork();
	if (!child) {
		noted = getpid() != parent && getppid() == parent ? 2 : 3;
		local = 2;
		text = malloc(100);
		strcpy(text, "from the child");
		nap(50);
		write(p[1], "c", 1);
		/* Descriptors are its own. */
		close(p[1]);
		close(p[0]);
		_exit(7);
	}
	NEED(child > 0);
	CHECK_EQ(write(p[1], "p", 1), 1);
	CHECK_EQ(code(ended(child)), 7);
	CHECK_EQ(read(p[0], order, 2), 2);
	CHECK_STR(order, "cp");
	CHECK_EQ(noted, 2);
	CHECK_EQ(local, 2);
	CHECK_STR(text, "from the child");
	free(text);
	close(p[0]);
	close(p[1]);
}

/* Why a program was not run, in errno, which both have. */
static void fails(const char *path, int why)
{
	char *args[] = { "program", NULL };
	pid_t child;

	noted = errno = 0;
	child = vfork();
	if (!child) {
		execve(path, args, environ);
		noted = errno;
		_exit(127);
	}
	CHECK_EQ(errno, why);
	CHECK_EQ(noted, why);
	CHECK_EQ(code(ended(child)), 127);
}

static void failures(void)
{
	int fd = open("text", O_WRONLY | O_CREAT, 0755);

	NEED(fd >= 0);
	CHECK_EQ(write(fd, "this is no program\n", 19), 19);
	close(fd);
	CHECK_EQ(chmod("text", 0755), 0);
	fails("./nothing", ENOENT);
	fails("./text", ENOEXEC);
	fails("./text/program", ENOTDIR);
	CHECK_EQ(chmod("text", 0644), 0);
	fails("./text", EACCES);
	fails(".", EACCES);
	unlink("text");
}

static void runs(int number)
{
	char digits[8], *args[] = { self, digits, NULL };
	pid_t child;

	snprintf(digits, sizeof digits, "%d", number);
	child = vfork();
	if (!child) {
		execve(self, args, environ);
		_exit(126);
	}
	NEED(child > 0);
	/* The child's calls have used the stack where this function's own calls do. */
	CHECK_EQ(strtol(digits, NULL, 10), number);
	CHECK_EQ(code(ended(child)), number);
}

static void dies(void)
{
	for (volatile int i = 0; i < 3; i++) {
		pid_t child;

		noted = 0;
		child = vfork();
		if (!child) {
			noted = 1;
			if (i == 0)
				kill(getpid(), SIGKILL);
			else if (i == 1)
				__builtin_trap();
			signal(SIGTERM, SIG_DFL);
			kill(getpid(), SIGTERM);
			_exit(1);
		}
		CHECK_EQ(noted, 1);
		int status = ended(child);

		CHECK(WIFSIGNALED(status));
		CHECK(i != 0 || WTERMSIG(status) == SIGKILL);
		CHECK(i != 2 || WTERMSIG(status) == SIGTERM);
	}
}

/* Much of the stack below. */
static __attribute__((noinline)) int uses_stack(int at)
{
	volatile char below[50000];

	memset((char *)below, 0x55, sizeof below);
	return below[at] == 0x55 ? 9 : 1;
}

/* And much of it above. */
static __attribute__((noinline)) int deep(int depth, int with)
{
	volatile char room[200];
	int result;

	memset((char *)room, depth, sizeof room);
	if (depth < 200)
		result = deep(depth + 1, with);
	else {
		pid_t child = vfork();

		if (!child)
			_exit(uses_stack(with));
		result = code(ended(child));
	}
	for (size_t i = 0; i < sizeof room; i++)
		if (room[i] != (char)depth)
			return -1;
	return result;
}

static void nested(void)
{
	int status = -1;
	pid_t child = vfork();

	if (!child) {
		pid_t grandchild = vfork();

		if (!grandchild) {
			noted = 11;
			_exit(3);
		}
		if (noted != 11 || waitpid(grandchild, &status, 0) != grandchild || code(status) != 3)
			_exit(1);
		/* A copy, of memory that is not its own. */
		grandchild = fork();
		if (!grandchild) {
			noted = 12;
			_exit(4);
		}
		if (noted != 11 || waitpid(grandchild, &status, 0) != grandchild || code(status) != 4)
			_exit(2);
		_exit(5);
	}
	CHECK_EQ(code(ended(child)), 5);
}

static volatile int counter, done;

static void *counts(void *unused)
{
	(void)unused;
	while (!done)
		counter++;
	return NULL;
}

static void threads_go_on(void)
{
	pthread_t thread;
	pid_t child;

	NEED(pthread_create(&thread, NULL, counts, NULL) == 0);
	child = vfork();
	if (!child) {
		int before = counter;

		for (int i = 0; i < 1000 && counter == before; i++)
			nap(5);
		_exit(counter == before);
	}
	CHECK_EQ(code(ended(child)), 0);
	runs(21);
	done = 1;
	pthread_join(thread, NULL);
}

static void note(int number)
{
	noted = number;
}

/* Signals that come while it waits are handled afterwards; the child's changes to its own handlers
 * change nothing. */
static void signals(void)
{
	struct sigaction act = { .sa_handler = note }, now;
	pid_t child;

	noted = 0;
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	child = vfork();
	if (!child) {
		signal(SIGUSR1, SIG_IGN);
		kill(getppid(), SIGUSR1);
		nap(20);
		_exit(noted != 0);
	}
	CHECK_EQ(code(ended(child)), 0);
	CHECK_EQ(noted, SIGUSR1);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
	CHECK(now.sa_handler == note);
	signal(SIGUSR1, SIG_DFL);
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return atoi(argv[1]);
	self = argv[0];
	alarm(60);
	shares();
	failures();
	for (int i = 1; i < 20; i++)
		runs(i);
	dies();
	CHECK_EQ(deep(1, 4711), 9);
	nested();
	threads_go_on();
	signals();
	return check_done();
}
