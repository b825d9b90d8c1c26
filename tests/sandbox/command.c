/* command WHAT...: what commands of a session are tried with. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static void caught(int number)
{
	char text[32];
	int n = snprintf(text, sizeof text, "caught %d\n", number);

	_exit(write(1, text, (size_t)n) < 0 ? 6 : 5);
}

static int copy(void)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(0, piece, sizeof piece)) > 0)
		if (write(1, piece, (size_t)n) < 0)
			return 1;
	return write(2, "to stderr\n", 10) < 0 ? 1 : 7;
}

/* Which terminal there is, as job control sees it. */
static int terminal(void)
{
	struct winsize size = { 0 };

	ioctl(0, TIOCGWINSZ, &size);
	printf("terminal %d front %d session %d size %dx%d\n", isatty(0), tcgetpgrp(0) == getpgrp(), getsid(0) == getpid(), size.ws_row,
		size.ws_col);
	say("ready");
	for (;;)
		pause();
}

static int connect_to(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(to.sun_path, path, sizeof to.sun_path - 1);
	printf("connect: %s\n", connect(fd, (struct sockaddr *)&to, sizeof to) ? strerror(errno) : "ok");
	return 0;
}

/* Listens by a name, and connects to that. */
static int talk(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	int wrong;

	snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	wrong = bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 1) || connect(client, (struct sockaddr *)&at, sizeof at);
	puts(wrong ? strerror(errno) : "ok");
	return wrong;
}

/* Numbers that are open besides 0, 1 and 2. */
static int files(void)
{
	int count = 0;

	for (int fd = 3; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	printf("files %d\n", count);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char cwd[4096];

	if (!strcmp(what, "copy"))
		return copy();
	if (!strcmp(what, "terminal")) {
		signal(SIGWINCH, caught);
		return terminal();
	}
	if (!strcmp(what, "catch")) {
		signal(SIGTERM, caught);
		signal(SIGINT, caught);
		signal(SIGUSR1, caught);
	}
	if (!strcmp(what, "catch") || !strcmp(what, "wait")) {
		say("ready");
		for (;;)
			pause();
	}
	if (!strcmp(what, "die"))
		return kill(getpid(), atoi(argv[2]));
	if (!strcmp(what, "spin"))
		for (;;)
			;
	if (!strcmp(what, "host")) {
		gethostname(cwd, sizeof cwd);
		return puts(cwd) < 0;
	}
	if (!strcmp(what, "talk"))
		return talk(argv[2]);
	if (!strcmp(what, "connect"))
		return connect_to(argv[2]);
	if (!strcmp(what, "files"))
		return files();
	printf("%s %s %s %s\n", getcwd(cwd, sizeof cwd), getenv("A") ? getenv("A") : "-", getenv("B") ? getenv("B") : "-",
		getenv("TERM") ? getenv("TERM") : "-");
	return 0;
}
