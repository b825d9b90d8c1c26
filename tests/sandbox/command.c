/* command WHAT...: what commands of a session are tried with. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
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

/* Reads to the end of the input once there is a file "go", and says what each read has given. */
static int late(void)
{
	char piece[4096], sizes[256] = "";
	size_t at = 0;
	ssize_t n;

	say("ready");
	while (access("go", F_OK))
		usleep(10000);
	do {
		n = read(0, piece, sizeof piece);
		at += (size_t)snprintf(sizes + at, sizeof sizes - at, " %zd", n);
	} while (n > 0 && at < sizeof sizes - 8);
	return printf("took%s.\n", sizes) < 0;
}

/* Writes what another line is to be written over, and then reads a line, goes on, or waits. */
static int percent(const char *then)
{
	char byte;

	if (write(1, "50%\r", 4) != 4)
		return 1;
	if (!strcmp(then, "read"))
		return read(0, &byte, 1) != 1;
	if (!strcmp(then, "spin"))
		for (;;)
			;
	for (;;)
		pause();
}

/* Which terminal there is, as job control sees it. */
static int terminal(int wants_keys)
{
	struct pollfd keys = { .fd = 0, .events = POLLIN };
	struct winsize size = { 0 };

	if (wants_keys)
		poll(&keys, 1, 0);
	ioctl(0, TIOCGWINSZ, &size);
	printf("terminal %d front %d session %d size %dx%d\n", isatty(0), tcgetpgrp(0) == getpgrp(),
	    getsid(0) == getpid(), size.ws_row, size.ws_col);
	say("ready");
	for (;;)
		pause();
}

/* Leaves a child behind that tries, once its parent has ended, to read, write and set up the
 * terminal; it writes the results to a file. */
static int steal(int leads)
{
	int gate[2];
	char byte;
	pid_t child;

	signal(SIGHUP, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	if (pipe(gate) || (child = fork()) < 0)
		return 1;
	if (!child) {
		struct termios settings;
		int log;

		if (leads)
			setsid();
		close(gate[1]);
		/* The command ends, and then the terminal does. */
		if (read(gate[0], &byte, 1) < 0)
			return 1;
		while (!tcgetattr(0, &settings))
			usleep(10000);
		log = open("stolen.part", O_CREAT | O_WRONLY | O_TRUNC, 0644);
		dprintf(log, "settings %s\n", strerror(errno));
		dprintf(log, "write %s\n", write(1, "STOLEN", 6) < 0 ? strerror(errno) : "ok");
		dprintf(log, "read %d\n", read(0, &byte, 1) > 0);
		dprintf(log, "tty %d\n", open("/dev/tty", O_RDWR) >= 0);
		return rename("stolen.part", "stolen") < 0;
	}
	say("left");
	return 0;
}

/* Opens the terminal of another command by the names there are. */
static int peek(const char *pid)
{
	char path[64];

	for (int n = 0; n < 4; n++) {
		snprintf(path, sizeof path, "/dev/pts/%d", n);
		if (open(path, O_RDWR | O_NOCTTY) >= 0)
			return puts(path) < 0;
	}
	snprintf(path, sizeof path, "/proc/%s/fd/0", pid);
	return puts(open(path, O_RDWR | O_NOCTTY) >= 0 ? path : "none") < 0;
}

static void goes_on(int number)
{
	(void)number;
}

/* With a child in its group that ends when it is continued. */
static int family(void)
{
	int status = 1;
	pid_t child;
	sigset_t none, goes;

	/* The signal comes when it likes after "ready", also before the child waits for it. */
	sigemptyset(&none);
	sigemptyset(&goes);
	sigaddset(&goes, SIGCONT);
	signal(SIGCONT, goes_on);
	if (!(child = fork())) {
		sigprocmask(SIG_BLOCK, &goes, NULL);
		say("ready");
		sigsuspend(&none);
		_exit(3);
	}
	while (waitpid(child, &status, 0) < 0)
		;
	return WEXITSTATUS(status);
}

/* Ends while a child of its own still has what it has written. */
static int drain(void)
{
	int p[2];
	char byte;

	if (pipe(p))
		return 1;
	if (!fork()) {
		int log = open("log", O_CREAT | O_WRONLY | O_TRUNC, 0644);

		close(p[1]);
		usleep(100000);
		while (read(p[0], &byte, 1) == 1)
			if (write(log, &byte, 1) != 1)
				return 1;
		return 0;
	}
	dup2(p[1], 1);
	close(p[0]), close(p[1]);
	return puts("one") < 0 || puts("two") < 0 ? 1 : 4;
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
	wrong = bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 1) ||
	    connect(client, (struct sockaddr *)&at, sizeof at);
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

/* Has a file open until its input ends. */
static int hold(const char *path)
{
	char byte;

	if (open(path, O_RDWR) < 0)
		return 1;
	say("ready");
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

/* Makes, moves and removes files without end. */
static int churn(void)
{
	char name[64], other[64];

	mkdir("churn", 0755);
	for (unsigned n = 0;; n++) {
		snprintf(name, sizeof name, "churn/%u", n % 50);
		snprintf(other, sizeof other, "churn/\n%u", n % 30);
		close(open(name, O_CREAT | O_WRONLY, 0644));
		rename(name, other);
		unlink(n % 3 ? other : "churn/\n7");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char cwd[4096];

	if (!strcmp(what, "copy"))
		return copy();
	if (!strcmp(what, "late"))
		return late();
	if (!strcmp(what, "percent"))
		return percent(argv[2]);
	if (!strcmp(what, "terminal")) {
		signal(SIGWINCH, caught);
		return terminal(argc > 2);
	}
	if (!strcmp(what, "catch")) {
		signal(SIGTERM, caught);
		signal(SIGINT, caught);
		signal(SIGUSR1, caught);
	}
	if (!strcmp(what, "deaf"))
		signal(SIGTERM, SIG_IGN);
	if (!strcmp(what, "catch") || !strcmp(what, "wait") || !strcmp(what, "deaf")) {
		say("ready");
		for (;;)
			pause();
	}
	if (!strcmp(what, "hold"))
		return hold(argv[2]);
	if (!strcmp(what, "churn"))
		return churn();
	if (!strcmp(what, "die"))
		return kill(getpid(), atoi(argv[2]));
	if (!strcmp(what, "end"))
		return kill(atoi(argv[2]), SIGKILL);
	if (!strcmp(what, "spin"))
		for (;;)
			;
	if (!strcmp(what, "steal"))
		return steal(argc > 2);
	if (!strcmp(what, "family"))
		return family();
	if (!strcmp(what, "drain"))
		return drain();
	if (!strcmp(what, "stop")) {
		say("ready");
		raise(SIGSTOP);
		return 3;
	}
	if (!strcmp(what, "text") || !strcmp(what, "comm")) {
		int fd = open(argc > 2 ? argv[2] : "/proc/self/comm", O_RDONLY);
		ssize_t n = fd < 0 ? 0 : read(fd, cwd, sizeof cwd);

		return n < 1 || write(1, cwd, (size_t)n) != n;
	}
	if (!strcmp(what, "execs"))
		return execl(argv[2], argv[2], "comm", (char *)NULL);
	if (!strcmp(what, "peek"))
		return peek(argv[2]);
	if (!strcmp(what, "line")) {
		say("ready");
		return !fgets(cwd, sizeof cwd, stdin) || printf("got %s", cwd) < 0;
	}
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
	printf("%s %s %s %s\n", getcwd(cwd, sizeof cwd), getenv("A") ? getenv("A") : "-",
	    getenv("B") ? getenv("B") : "-", getenv("TERM") ? getenv("TERM") : "-");
	return 0;
}
