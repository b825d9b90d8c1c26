/*
 * workers            forks 40 children in turn that call the grate; few threads of it serve all
 * workers at-once    forks 6 that call it at the same time
 * workers run GRATE  runs at-once behind GRATE three times, prints "ended" and waits for a line
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int in_turn(void)
{
	int seen[40], n = 0, pair[2], tid, i;

	if (pipe(pair))
		return 1;
	for (int child = 0; child < 40; child++) {
		pid_t pid = fork();

		if (!pid) {
			tid = (int)syscall(904);
			_exit(write(pair[1], &tid, sizeof tid) != sizeof tid);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid || read(pair[0], &tid, sizeof tid) != sizeof tid ||
		    tid <= 0)
			return 2;
		for (i = 0; i < n && seen[i] != tid; i++)
			;
		if (i == n)
			seen[n++] = tid;
	}
	if (n > 10) {
		printf("%d threads served 40 children\n", n);
		return 3;
	}
	return 0;
}

static int at_once(void)
{
	int gate[2], status, bad = 0;
	char c;

	if (pipe(gate))
		return 1;
	for (int child = 0; child < 6; child++)
		if (!fork()) {
			close(gate[1]);
			if (read(gate[0], &c, 1))
				_exit(1);
			_exit(syscall(904) <= 0);
		}
	close(gate[1]);
	for (int child = 0; child < 6; child++)
		bad |= wait(&status) < 0 || status;
	return bad;
}

static int run(char *self, char *grate)
{
	char *words[] = { grate, self, "at-once", NULL };
	int status;

	printf("begin\n");
	fflush(stdout);
	getchar();
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid) {
			execv(grate, words);
			_exit(127);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	printf("ended\n");
	fflush(stdout);
	getchar();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return run(argv[0], argv[2]);
	return argc == 2 ? at_once() : in_turn();
}
