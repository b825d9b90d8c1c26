/* posix_spawn: a program started without a copy of the parent. */
#include "check.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;
static char *self;

static int child(int argc, char **argv)
{
	if (!strcmp(argv[1], "args")) {
		for (int i = 2; i < argc; i++)
			printf("[%s]", argv[i]);
		printf("%s\n", getenv("SPAWN_VAR") ? getenv("SPAWN_VAR") : "unset");
		return 7;
	}
	if (!strcmp(argv[1], "fds")) {
		int open_ones = 0;

		for (int fd = 3; fd < 64; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				open_ones |= 1 << (fd - 3);
		return open_ones;
	}
	if (!strcmp(argv[1], "pwd")) {
		char path[256];

		printf("%s", getcwd(path, sizeof path));
		return 0;
	}
	return 99;
}

static int run(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int spawned(posix_spawn_file_actions_t *actions, char **argv, char **envp)
{
	pid_t pid = -1;
	int error = posix_spawn(&pid, self, actions, NULL, argv, envp);

	CHECK_EQ(error, 0);
	CHECK(pid > 0 && pid != getpid());
	return error ? -1 : run(pid);
}

static char *contents(const char *name)
{
	static char text[256];
	int fd = open(name, O_RDONLY);
	ssize_t len = read(fd, text, sizeof text - 1);

	close(fd);
	text[len > 0 ? len : 0] = 0;
	return text;
}

static void file_actions(void)
{
	posix_spawn_file_actions_t actions;
	char *args[] = { self, "args", "a b", "", NULL }, *vars[] = { "SPAWN_VAR=x", NULL };
	char *fds[] = { self, "fds", NULL };

	CHECK_EQ(posix_spawn_file_actions_init(&actions), 0);
	CHECK_EQ(posix_spawn_file_actions_addopen(&actions, 1, "out", O_WRONLY | O_CREAT | O_TRUNC, 0644), 0);
	CHECK_EQ(spawned(&actions, args, vars), 7);
	CHECK_STR(contents("out"), "[a b][]x\n");
	posix_spawn_file_actions_destroy(&actions);

	int kept = open("out", O_RDONLY), closed = open("out", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(kept, 3);
	CHECK_EQ(closed, 4);
	CHECK_EQ(spawned(NULL, fds, environ), 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, closed, 6);
	posix_spawn_file_actions_addclose(&actions, kept);
	CHECK_EQ(spawned(&actions, fds, environ), 8);
	posix_spawn_file_actions_destroy(&actions);
	CHECK_EQ(fcntl(kept, F_GETFD), 0);
	CHECK_EQ(fcntl(closed, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(6, F_GETFD), -1);
	close(kept);
	close(closed);
	unlink("out");
}

static void failures(void)
{
	pid_t pid = 4711;
	char *args[] = { "x", NULL };

	CHECK_EQ(posix_spawn(&pid, "./nothing", NULL, NULL, args, environ), ENOENT);
	CHECK_EQ(posix_spawn(&pid, "/", NULL, NULL, args, environ), EACCES);
	close(check_file("plain", "neither a program nor a script"));
	CHECK_EQ(posix_spawn(&pid, "./plain", NULL, NULL, args, environ), EACCES);
	CHECK_EQ(chmod("plain", 0755), 0);
	CHECK_EQ(posix_spawn(&pid, "./plain", NULL, NULL, args, environ), ENOEXEC);
	CHECK_EQ(unlink("plain"), 0);
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 1)
		return child(argc, argv);
	file_actions();
	failures();
	return check_done();
}
