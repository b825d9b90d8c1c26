/*
 * The parent of a grate and, started by that, its client. The grate's thread has lent its host
 * thread to the client: who deals with the grate as parents deal with children must not notice.
 * Usage: lends HOW GRATE [OPTIONS]...; says what became of the grate.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the client says who it is. */
enum { REPORT = 9 };

static void *last(void *unused)
{
	usleep(50000);
	exit(7);
	return unused;
}

static int client(const char *how)
{
	pid_t self = getpid();
	pthread_t thread;

	if (write(REPORT, &self, sizeof self) != sizeof self)
		return 1;
	if (!strcmp(how, "ends"))
		return 3;
	if (!strcmp(how, "threads")) {
		if (pthread_create(&thread, NULL, last, NULL))
			return 1;
		pthread_exit(NULL);
	}
	if (!strcmp(how, "burns")) {
		struct rusage used;
		do
			getrusage(RUSAGE_SELF, &used);
		while (used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000 + used.ru_stime.tv_sec * 1000 +
			used.ru_stime.tv_usec / 1000 <
		    300);
		return 0;
	}
	for (volatile unsigned i = 0;; i++)
		;
}

static void became(const char *what, pid_t grate, int flags)
{
	int status = 0;
	pid_t got = waitpid(grate, &status, flags);

	if (got != grate)
		printf("%s: %s; ", what, got ? strerror(errno) : "nothing");
	else if (WIFSTOPPED(status))
		printf("%s: stopped %d; ", what, WSTOPSIG(status));
	else if (WIFCONTINUED(status))
		printf("%s: continued; ", what);
	else if (WIFSIGNALED(status))
		printf("%s: signal %d; ", what, WTERMSIG(status));
	else
		printf("%s: exit %d; ", what, WEXITSTATUS(status));
	fflush(stdout);
}

static long millis(struct timeval t)
{
	return (long)t.tv_sec * 1000 + t.tv_usec / 1000;
}

int main(int argc, char **argv)
{
	char *arguments[16] = { 0 };
	int ends[2], n = 0;
	pid_t grate, below = 0;
	const char *how = argc > 1 ? argv[1] : "";

	if (argc > 2 && !strcmp(argv[1], "client"))
		return client(argv[2]);
	for (int i = 2; i < argc && n < 12; i++)
		arguments[n++] = argv[i];
	arguments[n++] = argv[0];
	arguments[n++] = "client";
	arguments[n] = argv[1];
	if (pipe(ends))
		return 1;
	grate = fork();
	if (!grate) {
		dup2(ends[1], REPORT);
		close(ends[0]);
		close(ends[1]);
		execv(arguments[0], arguments);
		_exit(127);
	}
	close(ends[1]);
	if (read(ends[0], &below, sizeof below) != sizeof below)
		below = 0;
	if (!strcmp(how, "killed")) {
		kill(grate, SIGKILL);
		became("grate", grate, 0);
		/* It has another parent now. */
		printf("client %d; ", kill(below, 0));
		kill(below, SIGKILL);
	} else if (!strcmp(how, "stopped")) {
		for (int i = 0; i < 3; i++) {
			kill(grate, SIGSTOP);
			became("grate", grate, WUNTRACED);
			kill(grate, SIGCONT);
			became("grate", grate, WCONTINUED);
		}
		kill(grate, SIGSTOP);
		became("grate", grate, WUNTRACED);
		/* The client ends; who started it stands. */
		kill(below, SIGKILL);
		usleep(50000);
		became("grate", grate, WNOHANG);
		kill(grate, SIGCONT);
		became("grate", grate, 0);
	} else if (!strcmp(how, "stopped-killed")) {
		kill(grate, SIGSTOP);
		became("grate", grate, WUNTRACED);
		kill(grate, SIGKILL);
		became("grate", grate, 0);
		kill(below, SIGKILL);
	} else if (!strcmp(how, "told")) {
		/* The first is for the client, which has not got it; the second ends it. */
		kill(grate, SIGTERM);
		usleep(20000);
		became("grate", grate, WNOHANG);
		kill(below, SIGTERM);
		became("grate", grate, 0);
	} else if (!strcmp(how, "pipe")) {
		/* Not one that grates leave to clients. */
		kill(grate, SIGPIPE);
		became("grate", grate, 0);
		kill(below, SIGKILL);
	} else if (!strcmp(how, "burns")) {
		struct rusage used;
		became("grate", grate, 0);
		getrusage(RUSAGE_CHILDREN, &used);
		/* Once: it is not the grate's own as well. */
		long all = millis(used.ru_utime) + millis(used.ru_stime);
		printf("%s", all >= 300 && all < 550 ? "once; " : "not once; ");
	} else {
		became("grate", grate, 0);
	}
	puts("done");
	fflush(stdout);
	_exit(0);
}
