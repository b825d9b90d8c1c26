/* Leases and notices of directories: given, or refused as by a Linux whose settings say that it
 * gives none. */
#include "check.h"

#include <signal.h>
#include <sys/stat.h>

#define MULTISHOT 0x80000000u

static int enabled(const char *path)
{
	char digit = '0';
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return 0;
	CHECK_EQ(read(fd, &digit, 1), 1);
	close(fd);
	return digit != '0';
}

static void check_leases(int on)
{
	int fd, p[2];

	NEED((fd = open("f", O_RDONLY)) >= 0 && pipe(p) == 0);
	CHECK_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
	if (!on) {
		CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_RDLCK), EINVAL);
		CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_WRLCK), EINVAL);
	} else if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
		CHECK_EQ(fcntl(fd, F_GETLEASE), F_RDLCK);
		CHECK_EQ(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	} else {
		/* There are file systems without them. */
		CHECK(errno == EINVAL || errno == EAGAIN);
	}
	CHECK_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
	CHECK_ERRNO(fcntl(fd, F_SETLEASE, 9), EINVAL);
	CHECK_ERRNO(fcntl(p[0], F_SETLEASE, F_RDLCK), EINVAL);
	CHECK_ERRNO(fcntl(999, F_SETLEASE, F_RDLCK), EBADF);
	CHECK_ERRNO(fcntl(999, F_GETLEASE), EBADF);
	close(fd), close(p[0]), close(p[1]);
}

static volatile sig_atomic_t told;

static void note(int number)
{
	(void)number;
	told++;
}

static void check_notices(int on)
{
	int folder = open("d", O_RDONLY | O_DIRECTORY), fd = open("f", O_RDONLY);

	NEED(folder >= 0 && fd >= 0);
	signal(SIGIO, note);
	if (on) {
		CHECK_EQ(fcntl(folder, F_NOTIFY, DN_CREATE | (int)MULTISHOT), 0);
		close(check_file("d/new", ""));
		CHECK_EQ(unlink("d/new"), 0);
		CHECK_EQ(told, 1);
		CHECK_ERRNO(fcntl(fd, F_NOTIFY, DN_CREATE), ENOTDIR);
	} else {
		CHECK_ERRNO(fcntl(folder, F_NOTIFY, DN_CREATE), EINVAL);
		CHECK_ERRNO(fcntl(fd, F_NOTIFY, DN_CREATE), EINVAL);
	}
	/* There is nothing that cannot be given up. */
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
	CHECK_ERRNO(fcntl(999, F_NOTIFY, DN_CREATE), EBADF);
	close(folder), close(fd);
}

int main(void)
{
	close(check_file("f", "text"));
	NEED(mkdir("d", 0700) == 0);
	check_leases(enabled("/proc/sys/fs/leases-enable"));
	check_notices(enabled("/proc/sys/fs/dir-notify-enable"));
	CHECK_EQ(unlink("f") | rmdir("d"), 0);
	return check_done();
}
