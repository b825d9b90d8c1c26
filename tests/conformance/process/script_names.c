/* Tests the arguments that a script's interpreter gets, however the script was named; how many
 * interpreters may interpret one another; and /proc/self/exe then. */
#include "check.h"
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static char self[250];

/* 100: it could not be run; else the status is the number of arguments. */
static int run(int dir, const char *path, int flags, int *error)
{
	char *args[] = { "name", "word", NULL };
	int status, ends[2];
	pid_t pid;

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	fflush(stdout);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		syscall(SYS_execveat, (long)dir, (long)path, (long)args, (long)environ, (long)flags);
		_exit(write(ends[1], &errno, sizeof errno) == sizeof errno ? 100 : 101);
	}
	close(ends[1]);
	*error = 0;
	CHECK_EQ(read(ends[0], error, sizeof *error), *error ? (ssize_t)sizeof *error : 0);
	close(ends[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* In the interpreter: the name it was told leads to the script, and it is itself what runs. */
static int interpreter(int argc, char **argv)
{
	char first[2], exe[250];
	int fd = open(argv[argc - 2], O_RDONLY);
	ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);

	if (fd < 0 || read(fd, first, 2) != 2 || memcmp(first, "#!", 2) || length <= 0)
		return 98;
	exe[length] = 0;
	if (strcmp(argv[argc - 1], "word") || strcmp(exe, getenv("CHECK_SELF")))
		return 97;
	return argc;
}

static void script(const char *name, const char *line)
{
	char text[300];

	NEED(snprintf(text, sizeof text, "#!%s\n", line) < (int)sizeof text);
	close(check_file(name, text));
	CHECK_EQ(chmod(name, 0755), 0);
}

static void chain(void)
{
	char name[] = "run0", line[] = "./run0";
	int error;

	for (int depth = 1; depth <= 5; depth++) {
		name[3] = (char)('0' + depth);
		script(name, depth == 1 ? self : line);
		CHECK_EQ(run(AT_FDCWD, name, 0, &error), depth + 2);
		line[5] = name[3];
	}
	script("run6", line);
	CHECK_EQ(run(AT_FDCWD, "run6", 0, &error), 100);
	CHECK_EQ(error, ELOOP);
	for (int depth = 2; depth <= 6; depth++) {
		name[3] = (char)('0' + depth);
		CHECK_EQ(unlink(name), 0);
	}
}

int main(int argc, char **argv)
{
	int dir, fd, error;
	ssize_t length;

	(void)argv;
	if (argc > 1)
		return interpreter(argc, argv);
	length = readlink("/proc/self/exe", self, sizeof self - 1);
	NEED(length > 0 && length < 200);
	if (access(self, X_OK))
		check_skip("the program's own file cannot be found here");
	NEED(setenv("CHECK_SELF", self, 1) == 0);
	chain();
	CHECK_EQ(run(AT_FDCWD, "/proc/self/cwd/run1", 0, &error), 3);

	dir = open(".", O_RDONLY | O_DIRECTORY);
	NEED(dir >= 0);
	CHECK_EQ(run(dir, "run1", 0, &error), 3);
	CHECK_EQ(run(dir, "run1", AT_SYMLINK_NOFOLLOW, &error), 3);
	fd = open("run1", O_RDONLY);
	CHECK_EQ(run(fd, "", AT_EMPTY_PATH, &error), 3);
	/* A descriptor that is closed by then leads nowhere. */
	CHECK_EQ(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
	CHECK_EQ(run(fd, "", AT_EMPTY_PATH, &error), 100);
	CHECK_EQ(error, ENOENT);
	CHECK_EQ(fcntl(dir, F_SETFD, FD_CLOEXEC), 0);
	CHECK_EQ(run(dir, "run1", 0, &error), 100);
	CHECK_EQ(error, ENOENT);
	CHECK_EQ(unlink("run1"), 0);
	return check_done();
}
