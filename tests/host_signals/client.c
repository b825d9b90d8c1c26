/* Waits for a signal in one of several ways and says what came: client WAY SIGNAL. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void note(int signal)
{
	came = signal;
}

static void *idle(void *none)
{
	for (;;)
		pause();
	return none;
}

static int ready(void)
{
	puts("ready");
	fflush(stdout);
	return 1;
}

static int by_descriptor(int number)
{
	struct signalfd_siginfo info;
	struct pollfd poll_one = { .events = POLLIN };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_BLOCK, &set, NULL);
	poll_one.fd = signalfd(-1, &set, 0);
	ready();
	if (poll(&poll_one, 1, -1) != 1 || read(poll_one.fd, &info, sizeof info) != sizeof info)
		return 0;
	return (int)info.ssi_signo;
}

static void pause_a_moment(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Whether the signal comes here and not to a child of the same group, which would end by it. */
static int of_child(int number)
{
	int status, end[2];
	char byte;
	pid_t pid;

	if (pipe(end))
		return 0;
	pid = fork();
	if (pid == 0) {
		signal(number, SIG_DFL);
		close(end[1]);
		ready();
		_exit(read(end[0], &byte, 1) == 0 ? 42 : 1);
	}
	close(end[0]);
	while (!came)
		pause_a_moment();
	/* Long enough for a signal that came to both. */
	for (int i = 0; i < 100; i++)
		pause_a_moment();
	close(end[1]);
	while (waitpid(pid, &status, 0) != pid)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

int main(int argc, char **argv)
{
	const char *way = argc == 3 ? argv[1] : "";
	int number = argc == 3 ? atoi(argv[2]) : 0;
	struct sigaction action = { .sa_handler = note };

	if (!strcmp(way, "grow")) {
		int fd = open("/grown", O_WRONLY | O_CREAT | O_TRUNC, 0600);
		ssize_t n;

		static char bytes[65536];

		while ((n = write(fd, bytes, sizeof bytes)) > 0)
			;
		printf("%d %d\n", errno == EFBIG, (int)lseek(fd, 0, SEEK_CUR) <= number);
		return unlink("/grown");
	}
	sigaction(number, &action, NULL);
	if (!strcmp(way, "default")) {
		signal(number, SIG_DFL);
		ready();
		for (;;)
			pause();
	} else if (!strcmp(way, "compute")) {
		ready();
		while (!came)
			;
	} else if (!strcmp(way, "wait")) {
		struct pollfd input = { .events = POLLIN };
		sigset_t set, none;

		sigemptyset(&none);
		sigemptyset(&set);
		sigaddset(&set, number);
		sigprocmask(SIG_BLOCK, &set, NULL);
		ready();
		if (ppoll(&input, 1, NULL, &none) != -1)
			return 1;
	} else if (!strcmp(way, "descriptor")) {
		came = by_descriptor(number);
	} else if (!strcmp(way, "threads")) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, idle, NULL))
			return 1;
		ready();
		while (!came)
			;
	} else if (!strcmp(way, "child")) {
		/* Both are in one process group: what a process sends is for the first alone. */
		if (!of_child(number))
			return 1;
	} else if (!strcmp(way, "group")) {
		/* A typed signal is for both. The child's end tells that it had it too. */
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			ready();
			while (!came)
				pause_a_moment();
			_exit(came);
		}
		while (waitpid(pid, &status, 0) != pid)
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != came)
			return 1;
	} else {
		return 2;
	}
	printf("%d\n", came);
	return 0;
}
