/* Ignores and blocks SIGSYS, then makes a call that kills. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void handler(int signal)
{
	printf("handled %d\n", signal);
}

int main(int argc, char **argv)
{
	sigset_t all;

	signal(SIGSYS, argc > 1 && !strcmp(argv[1], "handle") ? handler : SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	puts("before");
	fflush(stdout);
	for (int i = 0; i < 3; i++)
		syscall(SYS_geteuid);
	puts("after");
	return 0;
}
