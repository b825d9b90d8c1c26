/*
 * Says that it is going to wait for the client, and does something else: --how leaves, two, polls,
 * flags, or waits.
 */
#include <errno.h>
#include <lind/raw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int64_t start(char **argv, uint64_t flags)
{
	uint64_t self = lind_self();
	struct lind_arg none = { 0, self };

	return lind_call(SYS_spawn, self, lind_mine(argv[0]), lind_mine(argv), lind_mine(environ), none, none,
	    (struct lind_arg){ flags, self });
}

static int code_of(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	char **client = argv + 2;
	int status;

	if (!strcmp(how, "flags"))
		return start(client, 2) == -EINVAL && start(client, LIND_SPAWN_WAITS | 1u << 31) == -EINVAL
		    ? code_of((pid_t)start(client, 0))
		    : 98;
	pid_t child = (pid_t)start(client, LIND_SPAWN_WAITS);
	if (child < 0)
		return 97;
	if (!strcmp(how, "leaves"))
		_exit(5);
	if (!strcmp(how, "two")) {
		pid_t second = (pid_t)start(client, LIND_SPAWN_WAITS);
		return code_of(child) * 10 + code_of(second);
	}
	if (!strcmp(how, "polls")) {
		while (!waitpid(child, &status, WNOHANG))
			usleep(1000);
		return WIFEXITED(status) ? WEXITSTATUS(status) + 40 : 96;
	}
	return code_of(child);
}
