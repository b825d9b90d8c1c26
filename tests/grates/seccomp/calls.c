/*
 * Makes the calls of its command line and prints their results: NUMBER[,ARGUMENT]..., where an
 * argument is a 64-bit number or =TEXT. `fork` goes on in a child, `exec` in this program started
 * again, `spawn` in a program started beside it, `thread` in a thread; they wait for that.
 */
#include <lind/raw.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char **at;

static void one(char *text)
{
	uint64_t a[6] = { 0 };
	uint32_t nr = (uint32_t)strtoul(text, NULL, 0);
	int n = 0;

	strtok(text, ",");
	for (char *arg; n < 6 && (arg = strtok(NULL, ",")); n++)
		a[n] = *arg == '=' ? (uintptr_t)arg + 1 : strtoull(arg, NULL, 0);
	printf("%lld\n", (long long)lind_import_syscall((int32_t)nr, a[0], a[1], a[2], a[3], a[4], a[5]));
	fflush(stdout);
}

static void *rest(void *self)
{
	for (; *at; at++) {
		pid_t child = 0;
		int status = 0;

		if (!strcmp(*at, "fork")) {
			if (!(child = fork()))
				continue;
		} else if (!strcmp(*at, "exec")) {
			*at = self;
			execv(self, at);
		} else if (!strcmp(*at, "spawn")) {
			*at = self;
			if (posix_spawn(&child, self, NULL, NULL, at, environ))
				child = -1;
		} else if (!strcmp(*at, "thread")) {
			pthread_t thread;

			at++;
			pthread_create(&thread, NULL, rest, self);
			pthread_join(thread, NULL);
			exit(0);
		} else {
			one(*at);
			continue;
		}
		if (child < 0) {
			perror("child");
			exit(9);
		}
		waitpid(child, &status, 0);
		exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	at = argv + 1;
	rest(argv[0]);
	return argc == 0;
}
