/* Children that wait, for memory.py: `children fork|spawn N`. Says when there are none and when
 * there are N, each time waits for a line, and ends.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The descriptors on which a child waits, and on which it reports that it does. */
enum { WAIT = 3, SAY = 4 };

static int idle(void)
{
	char byte = 1;

	if (write(SAY, &byte, 1) != 1)
		return 1;
	return read(WAIT, &byte, 1) != 0;
}

static void say(int count)
{
	char line[16];

	printf("%d\n", count);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		exit(1);
}

static void open_at(int number, int from)
{
	if (from == number)
		return;
	if (dup2(from, number) < 0)
		exit(1);
	close(from);
}

int main(int argc, char **argv)
{
	int wait_on[2], say_on[2], count = argc > 2 ? atoi(argv[2]) : 0;
	char *child[] = { argv[0], "idle", 0 };

	if (argc == 2)
		return idle();
	close(WAIT);
	close(SAY);
	if (pipe(wait_on) || pipe(say_on))
		return 1;
	int keep = dup2(wait_on[1], 20), hear = dup2(say_on[0], 21);

	close(wait_on[1]);
	close(say_on[0]);
	if (say_on[1] == WAIT)
		say_on[1] = dup(say_on[1]);
	open_at(WAIT, wait_on[0]);
	open_at(SAY, say_on[1]);
	say(0);
	for (int i = 0; i < count; i++) {
		char byte;
		pid_t pid;

		if (!strcmp(argv[1], "fork")) {
			pid = fork();
			if (pid == 0) {
				close(keep);
				_exit(idle());
			}
		} else {
			posix_spawn_file_actions_t actions;

			posix_spawn_file_actions_init(&actions);
			posix_spawn_file_actions_addclose(&actions, keep);
			if (posix_spawn(&pid, argv[0], &actions, 0, child, environ))
				pid = -1;
			posix_spawn_file_actions_destroy(&actions);
		}
		if (pid < 0 || read(hear, &byte, 1) != 1)
			return 1;
	}
	say(count);
	close(keep);
	for (int i = 0; i < count; i++) {
		int status;

		if (wait(&status) < 0 || status)
			return 1;
	}
	return 0;
}
