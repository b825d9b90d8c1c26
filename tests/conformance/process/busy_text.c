/* ETXTBSY: what somebody has open for writing, or mapped so, does not run: programs, scripts,
 * interpreters. */
#include "../check.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The errno of running it, or its exit status with 1000 added. */
static int run(const char *path)
{
	char *argv[] = { (char *)path, "42", NULL };
	int status = -1;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		execve(path, argv, environ);
		_exit(errno);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_open(int fd)
{
	char *argv[] = { "x", "42", NULL };
	int status = -1;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		syscall(SYS_execveat, (long)fd, "", argv, environ, (long)AT_EMPTY_PATH);
		_exit(errno);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int spawn(const char *path)
{
	char *argv[] = { (char *)path, "42", NULL };
	int status = -1;
	pid_t pid;
	int error = posix_spawn(&pid, path, NULL, NULL, argv, environ);

	if (error)
		return error;
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void copy_self(int to)
{
	static char piece[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY);
	ssize_t got;

	NEED(from >= 0);
	while ((got = read(from, piece, sizeof piece)) > 0)
		NEED(write(to, piece, (size_t)got) == got);
	NEED(got == 0);
	close(from);
}

static void programs(void)
{
	int fd = open("program", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0755), other;
	pid_t pid;

	NEED(fd >= 0);
	copy_self(fd);
	CHECK_EQ(run("./program"), ETXTBSY);
	CHECK_EQ(spawn("./program"), ETXTBSY);
	CHECK_EQ(run_open(fd), ETXTBSY);
	other = dup(fd);
	close(fd);
	CHECK_EQ(run("./program"), ETXTBSY);
	close(other);
	CHECK_EQ(run("./program"), 42);
	CHECK_EQ(spawn("./program"), 42);

	/* Readers and those without access do not count. */
	fd = open("program", O_RDONLY);
	other = open("program", O_PATH);
	CHECK_EQ(run("./program"), 42);
	CHECK_EQ(run_open(fd), 42);
	CHECK_EQ(run_open(other), 42);
	close(fd);
	close(other);

	/* Another process' descriptor does. */
	fd = open("program", O_WRONLY);
	NEED(fd >= 0);
	int ends[2];
	NEED(pipe(ends) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		char byte;
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	close(fd);
	CHECK_EQ(run("./program"), ETXTBSY);
	close(ends[0]);
	close(ends[1]);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(run("./program"), 42);

	/* A lock is held by a descriptor that reads. */
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	fd = open("program", O_RDONLY);
	CHECK_EQ(fcntl(fd, F_SETLK, &lock), 0);
	CHECK_EQ(run("./program"), 42);
	close(fd);
	CHECK_EQ(unlink("program"), 0);
}

static void scripts(const char *self)
{
	char line[4200];
	int fd;

	snprintf(line, sizeof line, "#!%s\n", self);
	close(check_file("inner", line));
	close(check_file("outer", "#!./inner\n"));
	CHECK_EQ(chmod("inner", 0700), 0);
	CHECK_EQ(chmod("outer", 0700), 0);
	fd = open("outer", O_WRONLY | O_APPEND);
	CHECK_EQ(run("./outer"), ETXTBSY);
	close(fd);
	fd = open("inner", O_WRONLY | O_APPEND);
	CHECK_EQ(run("./outer"), ETXTBSY);
	CHECK_EQ(run("./inner"), ETXTBSY);
	/* Whether it may be executed comes first, what it is comes later. */
	CHECK_EQ(chmod("inner", 0600), 0);
	CHECK_EQ(run("./inner"), EACCES);
	CHECK_EQ(chmod("inner", 0700), 0);
	CHECK_EQ(ftruncate(fd, 0), 0);
	CHECK_EQ(run("./inner"), ETXTBSY);
	close(fd);
	CHECK_EQ(run("./inner"), ENOEXEC);
	CHECK_EQ(unlink("inner"), 0);
	CHECK_EQ(unlink("outer"), 0);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc > 1)
		return atoi(argv[argc - 1]);
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
	(void)argv;
	NEED(length > 0);
	path[length] = 0;
	programs();
	scripts(path);
	return check_done();
}
