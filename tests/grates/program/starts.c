/* starts read PATH: whether PATH can be opened. starts METHOD PROGRAM WORD...: starts PROGRAM with
 * the words in one of many ways, and waits. */
#include <errno.h>
#include <fcntl.h>
#include <lind/syscalls.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define FOLDER "/grates-test/program/"

static void failed(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(3);
}

static int open_program(const char *path, int flags)
{
	int fd = open(path, flags);

	if (fd < 0)
		failed(path);
	return fd;
}

static const char *other_name(const char *path, const char *name, int (*make)(const char *, const char *))
{
	unlink(name);
	if (make(path, name))
		failed(name);
	return name;
}

static int moved(const char *path, const char *name)
{
	return rename(path, name);
}

/* Another file in the program's place, which is the program then. */
static int replaced(const char *path, const char *name)
{
	char piece[65536];
	int from = open_program(path, O_RDONLY), to = open(name, O_WRONLY | O_CREAT | O_EXCL, 0755);
	ssize_t n;

	while ((n = read(from, piece, sizeof piece)) > 0)
		if (write(to, piece, (size_t)n) != n)
			return -1;
	close(from);
	close(to);
	return rename(name, path);
}

static void *renames(void *path)
{
	for (;;) {
		rename(path, FOLDER "elsewhere");
		rename(FOLDER "elsewhere", path);
	}
	return NULL;
}

static void script(const char *path)
{
	FILE *f = fopen(FOLDER "script", "w");

	fprintf(f, "#!%s read\n", path);
	fchmod(fileno(f), 0755);
	fclose(f);
}

static void start(const char *how, const char *path, char **argv)
{
	if (!strcmp(how, "exec") || !strcmp(how, "vfork"))
		execve(path, argv, environ);
	else if (!strcmp(how, "symlink"))
		execve(other_name(path, FOLDER "other", symlink), argv, environ);
	else if (!strcmp(how, "link"))
		execve(other_name(path, FOLDER "other", link), argv, environ);
	else if (!strcmp(how, "moved"))
		execve(other_name(path, FOLDER "other", moved), argv, environ);
	else if (!strcmp(how, "replaced") && !replaced(path, FOLDER "new"))
		execve(path, argv, environ);
	else if (!strcmp(how, "fexecve"))
		fexecve(open_program(path, O_RDONLY | O_CLOEXEC), argv, environ);
	else if (!strcmp(how, "path"))
		syscall(SYS_execveat, open_program(path, O_PATH | O_CLOEXEC), "", argv, environ, AT_EMPTY_PATH);
	else if (!strcmp(how, "at"))
		syscall(SYS_execveat, open_program(FOLDER, O_RDONLY | O_DIRECTORY), strrchr(path, '/') + 1, argv,
		    environ, 0);
	else if (!strcmp(how, "proc")) {
		char name[64];

		snprintf(name, sizeof name, "/proc/self/fd/%d", open_program(path, O_RDONLY));
		execve(name, argv, environ);
	} else if (!strcmp(how, "script")) {
		/* The interpreter gets the script's name; so the path to read is the option's. */
		script(path);
		execve(FOLDER "script", argv, environ);
	}
	failed(how);
}

static int wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		failed("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void *tries(void *argv)
{
	char **words = argv;

	/* There are no such arguments: it fails after it was found to be the program. */
	for (;;)
		execve(words[0], (char **)8, environ);
	return NULL;
}

/* One thread runs it while another fails to. */
static int failing(char **argv)
{
	int escaped = 0;

	for (int i = 0; i < 40; i++) {
		pid_t child = fork();
		pthread_t thread;

		if (!child) {
			pthread_create(&thread, NULL, tries, argv);
			usleep((unsigned)(i * 97));
			execve(argv[0], argv, environ);
			_exit(77);
		}
		escaped += wait_for(child) == 0;
	}
	printf("escaped %d\n", escaped);
	return 0;
}

static int racing(const char *path, char **argv)
{
	pthread_t thread;
	int escaped = 0;

	pthread_create(&thread, NULL, renames, (void *)path);
	for (int i = 0; i < 40; i++) {
		pid_t child = fork();

		if (!child) {
			execve(i & 1 ? path : FOLDER "elsewhere", argv, environ);
			_exit(77);
		}
		escaped += wait_for(child) == 0;
	}
	printf("escaped %d\n", escaped);
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argv[1];
	pid_t child;
	int fd;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(how, "read")) {
		fd = open(argv[2], O_RDONLY);
		printf("read %s: %s\n", argv[2], fd < 0 ? strerror(errno) : "ok");
		return fd < 0;
	}
	if (!strcmp(how, "self")) {
		argv[1] = argv[0];
		execve("/proc/self/exe", argv + 1, environ);
		failed("self");
	}
	if (!strcmp(how, "failing"))
		return failing(argv + 2);
	if (!strcmp(how, "race"))
		return racing(argv[2], argv + 2);
	if (!strcmp(how, "spawn")) {
		if ((errno = posix_spawn(&child, argv[2], NULL, NULL, argv + 2, environ)))
			failed(how);
		return wait_for(child);
	}
	if (!strcmp(how, "inplace"))
		start("exec", argv[2], argv + 2);
	if (!strcmp(how, "fails")) {
		execve(FOLDER "nothing", argv + 2, environ);
		execve(argv[2], (char **)8, environ);
		fd = open(argv[4], O_RDONLY);
		printf("read %s: %s\n", argv[4], fd < 0 ? strerror(errno) : "ok");
		return 0;
	}
	child = !strcmp(how, "vfork") ? vfork() : fork();
	if (!child)
		start(how, argv[2], argv + 2);
	return wait_for(child);
}
