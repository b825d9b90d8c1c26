/* Each opening of a terminal is an open file of its own: /dev/tty, and the terminal's name in
 * /proc/self/fd. A master opened again is a new one. */
#include "check.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

static void child(const char *name)
{
	struct termios settings;
	char byte, path[64];
	int tty, own;

	alarm(10);
	NEED(setsid() > 0);
	CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
	NEED((tty = open(name, O_RDWR)) >= 0);
	NEED((own = open("/dev/tty", O_RDONLY | O_NONBLOCK)) >= 0);
	CHECK_EQ(fcntl(own, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
	CHECK_EQ(fcntl(tty, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
	CHECK_ERRNO(write(own, "x", 1), EBADF);
	CHECK_ERRNO(read(own, &byte, 1), EAGAIN);
	CHECK_EQ(fcntl(tty, F_SETFL, O_APPEND), 0);
	CHECK(!(fcntl(own, F_GETFL) & O_APPEND));
	/* It is the same terminal. */
	NEED(tcgetattr(own, &settings) == 0);
	settings.c_lflag ^= ECHO;
	CHECK_EQ(tcsetattr(own, TCSANOW, &settings), 0);
	NEED(tcgetattr(tty, &settings) == 0);
	CHECK(!(settings.c_lflag & ECHO));
	CHECK_EQ(tcgetpgrp(own), getpgrp());
	close(own);
	snprintf(path, sizeof path, "/proc/self/fd/%d", tty);
	NEED((own = open(path, O_WRONLY)) >= 0);
	CHECK_ERRNO(read(own, &byte, 1), EBADF);
	CHECK_EQ(write(own, "w", 1), 1);
	CHECK_EQ(isatty(own), 1);
	CHECK(ttyname(own) && ttyname(tty) && !strcmp(ttyname(tty), name));
	CHECK_ERRNO(open(path, O_RDONLY | O_DIRECTORY), ENOTDIR);
	exit(check_done());
}

int main(void)
{
	char name[64], path[64], byte = 0;
	int status, other, master = posix_openpt(O_RDWR | O_NOCTTY);
	unsigned number = 0, next = 0;
	pid_t pid;

	if (master < 0 || grantpt(master) || unlockpt(master))
		check_skip("no pseudoterminals here");
	snprintf(name, sizeof name, "%s", ptsname(master));
	if (!(pid = fork()))
		child(name);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(read(master, &byte, 1), 1);
	CHECK_EQ(byte, 'w');
	snprintf(path, sizeof path, "/proc/self/fd/%d", master);
	CHECK_EQ(ioctl(master, TIOCGPTN, &number), 0);
	if ((other = open(path, O_RDWR | O_NOCTTY)) >= 0) {
		CHECK_EQ(ioctl(other, TIOCGPTN, &next), 0);
		CHECK(number != next);
		close(other);
	}
	close(master);
	return check_done();
}
