/* stuck WAY: says "ready" and is hard to end then, in one of several ways. With "groups" as root
 * alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS 65536

static void ready(void)
{
	if (write(1, "ready\n", 6) != 6)
		_exit(9);
}

static void compute(void)
{
	ready();
	for (volatile unsigned i = 0;; i++)
		;
}

/* No signal that can be blocked does anything. */
static void deaf(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static void deafly_compute(void)
{
	deaf();
	compute();
}

static void read_fifo(void)
{
	deaf();
	mkfifo("/tmp/fifo", 0600);
	ready();
	open("/tmp/fifo", O_RDONLY);
}

static void lock_twice(void)
{
	int one = open("/tmp/lock", O_RDWR | O_CREAT, 0600), two = open("/tmp/lock", O_RDWR);

	deaf();
	if (one < 0 || two < 0 || flock(one, LOCK_EX))
		return;
	ready();
	flock(two, LOCK_EX);
}

static void loop(int number)
{
	for (volatile int i = number;; i++)
		;
}

static void handle(void)
{
	signal(SIGTERM, loop);
	ready();
	for (;;)
		pause();
}

static void ignore(void)
{
	signal(SIGTERM, SIG_IGN);
	ready();
	for (;;)
		pause();
}

static void *more_threads(void *none)
{
	pthread_t thread;

	for (;;)
		if (pthread_create(&thread, NULL, more_threads, none))
			usleep(1000);
}

static void make_threads(void)
{
	deaf();
	ready();
	more_threads(NULL);
}

static void make_processes(void)
{
	signal(SIGCHLD, SIG_IGN);
	deaf();
	ready();
	for (;;)
		if (fork() < 0)
			usleep(1000);
}

static void stop(void)
{
	ready();
	for (;;)
		raise(SIGSTOP);
}

static void lend_memory(void)
{
	deaf();
	if (!vfork()) {
		ready();
		for (;;)
			pause();
	}
}

static void *make_descriptor(void *none)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (!bind(fd, (struct sockaddr *)&any, sizeof any.sun_family) && !listen(fd, 1))
		accept(fd, NULL, NULL);
	return none;
}

/* Forks with a thread that is making a descriptor: who follows descriptors then looks at all of the
 * child's, for a user of so many groups. */
static void fork_with_groups(void)
{
	static gid_t groups[GROUPS];
	pthread_t thread;

	for (unsigned i = 0; i < GROUPS; i++)
		groups[i] = i * 2654435761u % 1000000;
	if (setgroups(GROUPS, groups) || pthread_create(&thread, NULL, make_descriptor, NULL))
		return;
	ready();
	for (;;) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {
		{ "compute", compute },
		{ "deaf", deafly_compute },
		{ "fifo", read_fifo },
		{ "lock", lock_twice },
		{ "handler", handle },
		{ "ignore", ignore },
		{ "threads", make_threads },
		{ "processes", make_processes },
		{ "stop", stop },
		{ "vfork", lend_memory },
		{ "groups", fork_with_groups },
	};

	for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(argv[1], ways[i].name))
			ways[i].run();
	fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "no way", strerror(errno));
	return 1;
}
