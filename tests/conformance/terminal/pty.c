/* Pseudoterminals: making one, its names, both sides, settings, sizes, hanging up. */
#include "check.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

static int master, slave;
static char name[64];

static void check_names(void)
{
	struct stat by_name, by_fd;
	char link[64], fd[64];
	ssize_t n;
	int number = -1;

	CHECK_EQ(ioctl(master, TIOCGPTN, &number), 0);
	CHECK_EQ(atoi(name + strlen("/dev/pts/")), number);
	CHECK_ERRNO(ioctl(slave, TIOCGPTN, &number), ENOTTY);
	NEED(stat(name, &by_name) == 0 && fstat(slave, &by_fd) == 0);
	CHECK(S_ISCHR(by_fd.st_mode));
	CHECK_EQ(by_name.st_ino, by_fd.st_ino);
	CHECK_EQ(by_name.st_dev, by_fd.st_dev);
	CHECK_EQ(by_name.st_rdev, by_fd.st_rdev);
	snprintf(fd, sizeof fd, "/proc/self/fd/%d", slave);
	NEED((n = readlink(fd, link, sizeof link - 1)) > 0);
	link[n] = 0;
	CHECK_STR(link, name);
	CHECK_STR(ttyname(slave), name);
	CHECK_EQ(isatty(slave), 1);
	CHECK_EQ(isatty(master), 1);
	CHECK_ERRNO(open("/dev/pts/4096", O_RDWR | O_NOCTTY), ENOENT);
}

static void check_line(void)
{
	struct termios settings, again;
	char text[64] = { 0 };
	int waiting = 0;

	CHECK_EQ(write(master, "hello\n", 6), 6);
	/* The line discipline works when it gets to it. */
	CHECK_EQ(poll(&(struct pollfd){ slave, POLLIN, 0 }, 1, 10000), 1);
	CHECK_EQ(ioctl(slave, FIONREAD, &waiting), 0);
	CHECK_EQ(waiting, 6);
	CHECK_EQ(read(slave, text, sizeof text), 6);
	CHECK_STR(text, "hello\n");
	memset(text, 0, sizeof text);
	CHECK_EQ(read(master, text, sizeof text), 7);
	CHECK_STR(text, "hello\r\n");
	NEED(tcgetattr(slave, &settings) == 0);
	CHECK(settings.c_lflag & ICANON && settings.c_lflag & ECHO && settings.c_lflag & ISIG);
	settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	settings.c_cc[VMIN] = 1;
	settings.c_cc[VTIME] = 0;
	CHECK_EQ(tcsetattr(slave, TCSANOW, &settings), 0);
	NEED(tcgetattr(master, &again) == 0);
	CHECK(!(again.c_lflag & ECHO));
	CHECK_EQ(write(master, "x", 1), 1);
	CHECK_EQ(read(slave, text, sizeof text), 1);
	CHECK_EQ(poll(&(struct pollfd){ master, POLLIN, 0 }, 1, 0), 0);
	CHECK_EQ(write(master, "typed", 5), 5);
	CHECK_EQ(poll(&(struct pollfd){ slave, POLLIN, 0 }, 1, 10000), 1);
	CHECK_EQ(tcflush(slave, TCIFLUSH), 0);
	CHECK_EQ(ioctl(slave, FIONREAD, &waiting), 0);
	CHECK_EQ(waiting, 0);
	CHECK_EQ(tcdrain(slave), 0);
	CHECK_ERRNO(tcflush(slave, 99), EINVAL);
}

static void check_size(void)
{
	struct winsize size = { 24, 80, 0, 0 };

	CHECK_EQ(ioctl(master, TIOCSWINSZ, &size), 0);
	size.ws_row = 0;
	CHECK_EQ(ioctl(slave, TIOCGWINSZ, &size), 0);
	CHECK_EQ(size.ws_row, 24);
	CHECK_EQ(size.ws_col, 80);
}

static void check_hang_up(void)
{
	char text[16];

	close(slave);
	CHECK_ERRNO(read(master, text, sizeof text), EIO);
	NEED((slave = open(name, O_RDWR | O_NOCTTY)) >= 0);
	CHECK_EQ(write(slave, "back", 4), 4);
	CHECK_EQ(read(master, text, sizeof text), 4);
	close(master);
	CHECK_EQ(read(slave, text, sizeof text), 0);
	CHECK_ERRNO(write(slave, "x", 1), EIO);
	CHECK_ERRNO(tcgetattr(slave, &(struct termios){ 0 }), EIO);
	close(slave);
	CHECK_ERRNO(open(name, O_RDWR | O_NOCTTY), ENOENT);
}

int main(void)
{
	int file = check_file("f", ""), other, lock;

	if (access("/dev/ptmx", R_OK | W_OK) || (master = posix_openpt(O_RDWR | O_NOCTTY)) < 0)
		check_skip("no /dev/ptmx here");
	NEED(ptsname_r(master, name, sizeof name) == 0);
	CHECK_EQ(strncmp(name, "/dev/pts/", 9), 0);
	lock = 1;
	CHECK_EQ(ioctl(master, TIOCSPTLCK, &lock), 0);
	CHECK_ERRNO(open(name, O_RDWR | O_NOCTTY), EIO);
	NEED(grantpt(master) == 0 && unlockpt(master) == 0);
	NEED((slave = open(name, O_RDWR | O_NOCTTY)) >= 0);
	NEED((other = posix_openpt(O_RDWR | O_NOCTTY)) >= 0);
	CHECK(strcmp(ptsname(other), name) != 0);
	close(other);
	check_names();
	check_line();
	check_size();
	CHECK_ERRNO(ioctl(file, TIOCGPTN, &lock), ENOTTY);
	CHECK_ERRNO(tcgetpgrp(file), ENOTTY);
	CHECK_ERRNO(tcgetpgrp(slave), ENOTTY);
	check_hang_up();
	close(file);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
