/* ETXTBSY the other way: a program that runs is not opened for writing, truncated or emptied, by
 * any name, until the last process that runs it has gone. */
#include "../check.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static off_t whole;

static void copy_self(const char *name)
{
	static char piece[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY), to = open(name, O_CREAT | O_EXCL | O_WRONLY, 0755);
	ssize_t got;

	NEED(from >= 0);
	NEED(to >= 0);
	while ((got = read(from, piece, sizeof piece)) > 0)
		NEED(write(to, piece, (size_t)got) == got);
	NEED(got == 0);
	whole = lseek(to, 0, SEEK_CUR);
	close(from);
	close(to);
}

/* A process that runs `path`, by descriptor `fd` if there is one, until `*end` is closed. With
 * `twice` it forks a child first, and ends before that. */
static pid_t start(const char *path, int fd, int twice, int *end)
{
	char numbers[2][16], byte;
	int ready[2], stay[2];
	pid_t pid;

	NEED(pipe(ready) == 0);
	NEED(pipe(stay) == 0);
	NEED(fcntl(stay[1], F_SETFD, FD_CLOEXEC) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		snprintf(numbers[0], sizeof numbers[0], "%d", ready[1]);
		snprintf(numbers[1], sizeof numbers[1], "%d", stay[0]);
		char *argv[] = { "program", twice ? "twice" : "once", numbers[0], numbers[1], NULL };
		close(stay[1]);
		close(ready[0]);
		if (fd < 0)
			execve(path, argv, environ);
		else
			syscall(SYS_execveat, (long)fd, "", argv, environ, (long)AT_EMPTY_PATH);
		_exit(errno);
	}
	close(ready[1]);
	close(stay[0]);
	NEED(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	*end = stay[1];
	return pid;
}

/* The program that runs: it reports that, and waits. */
static int stay(char **argv)
{
	int ready = atoi(argv[2]), end = atoi(argv[3]);
	char byte = 0;

	if (!strcmp(argv[1], "twice") && fork() != 0)
		_exit(0);
	if (write(ready, &byte, 1) != 1)
		return 1;
	close(ready);
	return read(end, &byte, 1) != 0;
}

static long openat_2(const char *path, unsigned long long flags)
{
	struct open_how how = { .flags = flags };

	return syscall(SYS_openat2, (long)AT_FDCWD, path, &how, (long)sizeof how);
}

/* By whatever name, nobody may write to it. */
static void refused(const char *path)
{
	static const int ways[] = {
		O_WRONLY,
		O_RDWR,
		O_WRONLY | O_APPEND,
		O_WRONLY | O_NONBLOCK,
		O_WRONLY | O_TRUNC,
		O_RDWR | O_TRUNC,
		O_RDONLY | O_TRUNC,
		O_WRONLY | O_CREAT,
		O_WRONLY | O_CREAT | O_TRUNC,
		O_RDONLY | O_TRUNC | O_CREAT,
		O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
	};
	struct stat st;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (!strcmp(path, "link") && ways[i] & O_NOFOLLOW)
			continue;
		CHECK_ERRNO(open(path, ways[i], 0644), ETXTBSY);
		CHECK_ERRNO(openat(AT_FDCWD, path, ways[i], 0644), ETXTBSY);
		if (!(ways[i] & O_CREAT))
			CHECK_ERRNO(openat_2(path, (unsigned long long)ways[i]), ETXTBSY);
	}
	CHECK_ERRNO(creat(path, 0644), ETXTBSY);
	CHECK_ERRNO(truncate(path, 0), ETXTBSY);
	CHECK_ERRNO(truncate(path, whole + 1), ETXTBSY);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_size, whole);
}

/* Opening without writing is allowed, and earlier errors take precedence. */
static void allowed(void)
{
	static const int ways[] = { O_RDONLY, O_RDONLY | O_NONBLOCK, O_PATH, O_PATH | O_WRONLY | O_TRUNC,
		O_RDONLY | O_CREAT };
	char path[64];
	int fd;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		fd = open("program", ways[i], 0644);
		CHECK(fd >= 0);
		close(fd);
	}
	CHECK_ERRNO(open("program", O_WRONLY | O_CREAT | O_EXCL, 0644), EEXIST);
	CHECK_ERRNO(open("program", O_WRONLY | O_DIRECTORY), ENOTDIR);
	CHECK_EQ(chmod("program", 0700), 0);
	CHECK_EQ(link("program", "other"), 0);
	CHECK_EQ(symlink("program", "link"), 0);
	refused("other");
	refused("link");
	/* Also through what is open already. */
	fd = open("program", O_RDONLY);
	NEED(fd >= 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CHECK_ERRNO(open(path, O_WRONLY), ETXTBSY);
	CHECK_ERRNO(open(path, O_RDWR | O_TRUNC), ETXTBSY);
	CHECK_ERRNO(truncate(path, 0), ETXTBSY);
	close(fd);
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(rename("other", "program"), 0);
	CHECK_EQ(unlink("other"), 0);
}

static void writable(const char *path)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(truncate(path, whole), 0);
}

static void programs(void)
{
	int end, other_end, fd, status;
	pid_t pid, other;

	copy_self("program");
	writable("program");
	pid = start("./program", -1, 0, &end);
	refused("program");
	allowed();
	/* Nothing is kept of what was refused: it still runs. */
	other = start("./program", -1, 0, &other_end);
	close(end);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	refused("program");
	close(other_end);
	CHECK_EQ(waitpid(other, &status, 0), other);
	CHECK_EQ(status, 0);
	writable("program");

	/* However it ends. */
	pid = start("./program", -1, 0, &end);
	refused("program");
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	writable("program");
	close(end);

	/* A child made by fork runs it as well. */
	pid = start("./program", -1, 1, &end);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	refused("program");
	close(end);
	for (int i = 0; (fd = open("program", O_WRONLY)) < 0 && errno == ETXTBSY && i < 5000; i++)
		usleep(1000);
	CHECK(fd >= 0);
	close(fd);

	/* By descriptor. */
	fd = open("program", O_RDONLY | O_CLOEXEC);
	NEED(fd >= 0);
	pid = start(NULL, fd, 0, &end);
	refused("program");
	close(end);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	close(fd);

	/* A program that was not found or could not be run is not busy. */
	CHECK_EQ(chmod("program", 0600), 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		char *argv[] = { "program", NULL };
		execve("./program", argv, environ);
		_exit(errno == EACCES ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	writable("program");
	fd = open("program", O_RDONLY | O_TRUNC);
	NEED(fd >= 0);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	CHECK_ERRNO(write(fd, "x", 1), EBADF);
	close(fd);
	CHECK_EQ(unlink("program"), 0);
}

/* A file that took the place of one that still runs, perhaps also its number, is another one. */
static void replaced(void)
{
	int end, status, fd;
	pid_t pid;

	for (int i = 0; i < 3; i++) {
		copy_self("program");
		pid = start("./program", -1, 0, &end);
		CHECK_EQ(unlink("program"), 0);
		fd = open("program", O_CREAT | O_EXCL | O_RDWR, 0755);
		NEED(fd >= 0);
		close(fd);
		fd = open("program", O_RDWR | O_TRUNC);
		CHECK(fd >= 0);
		close(fd);
		CHECK_EQ(unlink("program"), 0);
		copy_self("program");
		writable("program");
		close(end);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		CHECK_EQ(unlink("program"), 0);
	}
}

/* Of a script only the interpreter is busy while it runs. */
static void scripts(void)
{
	int end, fd;
	pid_t pid;

	copy_self("program");
	fd = open("script", O_CREAT | O_EXCL | O_WRONLY, 0755);
	NEED(fd >= 0);
	NEED(write(fd, "#!./program script\n", 19) == 19);
	close(fd);
	pid = start("./script", -1, 0, &end);
	refused("program");
	fd = open("script", O_WRONLY | O_TRUNC);
	CHECK(fd >= 0);
	close(fd);
	close(end);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	writable("program");
	CHECK_EQ(unlink("script"), 0);
	CHECK_EQ(unlink("program"), 0);
}

/* A writer and an exec at the same time: each succeeds or gets ETXTBSY, and nothing else, even
 * without waiting. */
static void race(void)
{
	int status, fd;
	pid_t pid;

	copy_self("program");
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		char *argv[] = { "program", "nothing", NULL };
		for (int i = 0; i < 40; i++) {
			pid_t child = fork();
			if (child == 0) {
				execve("./program", argv, environ);
				_exit(errno == ETXTBSY ? 42 : 1);
			}
			if (child < 0 || waitpid(child, &status, 0) != child || status != 42 << 8)
				_exit(1);
		}
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		fd = open("program", O_WRONLY | O_NONBLOCK);
		if (fd >= 0)
			close(fd);
		else if (!CHECK_EQ(errno, ETXTBSY))
			break;
		if (truncate("program", whole) != 0 && !CHECK_EQ(errno, ETXTBSY))
			break;
	}
	CHECK_EQ(status, 0);
	CHECK_EQ(unlink("program"), 0);
}

int main(int argc, char **argv)
{
	/* A script gives its own name between. */
	if (argc > 4 && !strcmp(argv[1], "script"))
		return stay(argv + 2);
	if (argc == 4)
		return stay(argv);
	if (argc == 2)
		return 42;
	programs();
	replaced();
	scripts();
	race();
	return check_done();
}
