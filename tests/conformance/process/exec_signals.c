/* Signals that come while a program is being loaded do not hinder that. */
#include "check.h"
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

static void nothing(int sig)
{
	(void)sig;
}

/* A copy that was never run: what is known already would not be loaded again. */
static void copy_of(const char *name, int program)
{
	struct stat stat;
	off_t at = 0;
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);

	NEED(fd >= 0 && fstat(program, &stat) == 0);
	while (at < stat.st_size)
		NEED(sendfile(fd, program, &at, (size_t)(stat.st_size - at)) > 0);
	NEED(close(fd) == 0);
}

int main(int argc, char **argv)
{
	char *args[] = { "copy", "loaded", NULL };
	int program;

	if (argc > 1)
		return strcmp(argv[1], "loaded") ? 1 : 42;
	program = open(argv[0], O_RDONLY | O_CLOEXEC);
	if (program < 0) {
		puts("the program's own file cannot be found here");
		return 77;
	}
	/* Its default action is to be ignored, so the program that is loaded may get it as well. */
	signal(SIGURG, nothing);
	for (int round = 0; round < 40; round++) {
		int status = 0;
		pid_t pid;

		copy_of("copy", program);
		pid = fork();
		NEED(pid >= 0);
		if (pid == 0) {
			execve("./copy", args, environ);
			_exit(errno);
		}
		while (waitpid(pid, &status, WNOHANG) == 0)
			kill(pid, SIGURG);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 42);
		CHECK_EQ(unlink("copy"), 0);
	}
	return check_done();
}
