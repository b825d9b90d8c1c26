/* Appends to a log, forks, execs: each of it once. */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *text)
{
	int fd = open("/grates-test/log", O_WRONLY | O_APPEND);

	if (fd != 3 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		_exit(9);
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	if (argc > 1) {
		say("exec\n");
		return 7;
	}
	say("parent\n");
	if (!(child = fork())) {
		say("child\n");
		execl(argv[0], argv[0], "again", NULL);
		_exit(8);
	}
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7 || wait(&status) != -1)
		return 1;
	say("parent\n");
	return 0;
}
