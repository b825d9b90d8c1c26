/* fork with exec, vfork, system, popen, pipelines, and fork of a process with threads. */
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

extern char **environ;
static char *self;

static int ended(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int child(char **argv)
{
	char text[256];
	ssize_t n;

	if (!strcmp(argv[1], "upper")) {
		while ((n = read(0, text, sizeof text)) > 0) {
			for (ssize_t i = 0; i < n; i++)
				text[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i]);
			if (write(1, text, (size_t)n) != n)
				return 1;
		}
		return 0;
	}
	if (!strcmp(argv[1], "status"))
		return atoi(argv[2]);
	return 99;
}

static void pipeline(void)
{
	int in[2], out[2];
	char text[64] = "";
	pid_t first, second;

	NEED(pipe(in) == 0 && pipe(out) == 0);
	first = fork();
	NEED(first >= 0);
	if (first == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]), close(in[1]), close(out[0]), close(out[1]);
		execl(self, self, "upper", (char *)NULL);
		_exit(127);
	}
	second = fork();
	NEED(second >= 0);
	if (second == 0) {
		dup2(in[1], 1);
		close(in[0]), close(in[1]), close(out[0]), close(out[1]);
		for (int i = 0; i < 3; i++)
			dprintf(1, "line %d\n", i);
		_exit(3);
	}
	close(in[0]), close(in[1]), close(out[1]);
	for (size_t got = 0; got < sizeof text - 1;) {
		ssize_t n = read(out[0], text + got, sizeof text - 1 - got);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	close(out[0]);
	CHECK_STR(text, "LINE 0\nLINE 1\nLINE 2\n");
	CHECK_EQ(ended(first), 0);
	CHECK_EQ(ended(second), 3);
}

static void vforks(void)
{
	for (int i = 0; i < 10; i++) {
		char number[8];
		char *args[] = { self, "status", number, NULL };
		pid_t pid;

		snprintf(number, sizeof number, "%d", i);
		pid = vfork();
		if (pid == 0) {
			execve(self, args, environ);
			_exit(126);
		}
		NEED(pid > 0);
		CHECK_EQ(ended(pid), i);
	}
	pid_t pid = vfork();

	if (pid == 0) {
		execve("./nothing", environ, environ);
		_exit(errno == ENOENT ? 5 : 6);
	}
	CHECK_EQ(ended(pid), 5);
}

static sem_t ready, go;

static void *sleeper(void *unused)
{
	(void)unused;
	sem_post(&ready);
	sem_wait(&go);
	return NULL;
}

static void *doubled(void *number)
{
	*(int *)number *= 2;
	return NULL;
}

static void *forker(void *unused)
{
	int on_stack = 77;
	pid_t pid = fork();

	(void)unused;
	if (pid == 0) {
		/* The only thread there is. */
		pthread_t another;

		if (on_stack != 77 || pthread_create(&another, NULL, doubled, &on_stack) || pthread_join(another, NULL))
			_exit(23);
		_exit(on_stack == 154 ? 21 : 22);
	}
	CHECK_EQ(on_stack, 77);
	return (void *)(long)ended(pid);
}

static void with_threads(void)
{
	pthread_t sleeps, forks;
	void *result;
	pid_t pid;

	NEED(sem_init(&ready, 0, 0) == 0 && sem_init(&go, 0, 0) == 0);
	NEED(pthread_create(&sleeps, NULL, sleeper, NULL) == 0);
	sem_wait(&ready);
	NEED(pthread_create(&forks, NULL, forker, NULL) == 0);
	CHECK_EQ(pthread_join(forks, &result), 0);
	CHECK_EQ((long)result, 21);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		_exit(8);
	CHECK_EQ(ended(pid), 8);
	sem_post(&go);
	CHECK_EQ(pthread_join(sleeps, NULL), 0);
}

static int prepared, in_parent, in_child;
static void prepare(void)
{
	prepared++;
}
static void parent(void)
{
	in_parent++;
}
static void the_child(void)
{
	in_child++;
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 1)
		return child(argv);
	pipeline();
	vforks();
	with_threads();
	CHECK_EQ(pthread_atfork(prepare, parent, the_child), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(prepared * 100 + in_parent * 10 + in_child);
	CHECK_EQ(ended(pid), 101);
	CHECK_EQ(in_parent, 1);
	CHECK_EQ(in_child, 0);
	return check_done();
}
