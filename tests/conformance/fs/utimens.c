/* utimensat, futimens, utimes, utime: exact times, UTIME_NOW, UTIME_OMIT. */
#include "check.h"

#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <utime.h>

static struct stat st;

static void times_are(const char *name, long long atime, long atime_ns, long long mtime, long mtime_ns)
{
	NEED(lstat(name, &st) == 0);
	CHECK_EQ(st.st_atim.tv_sec, atime);
	CHECK_EQ(st.st_atim.tv_nsec, atime_ns);
	CHECK_EQ(st.st_mtim.tv_sec, mtime);
	CHECK_EQ(st.st_mtim.tv_nsec, mtime_ns);
}

int main(void)
{
	struct timespec set[2];
	int fd = check_file("f", "x");
	time_t now = time(NULL);

	/* The padding of a timespec does not matter. */
	memset(set, 0xff, sizeof set);
	set[0].tv_sec = 1000000000, set[0].tv_nsec = 123456789;
	set[1].tv_sec = 5000000000, set[1].tv_nsec = 999999999;
	CHECK_EQ(utimensat(AT_FDCWD, "f", set, 0), 0);
	times_are("f", 1000000000, 123456789, 5000000000, 999999999);
	set[0].tv_nsec = UTIME_OMIT;
	set[1].tv_sec = 7, set[1].tv_nsec = 0;
	CHECK_EQ(futimens(fd, set), 0);
	times_are("f", 1000000000, 123456789, 7, 0);
	set[1].tv_nsec = UTIME_NOW;
	CHECK_EQ(futimens(fd, set), 0);
	NEED(fstat(fd, &st) == 0);
	CHECK(st.st_mtim.tv_sec >= now && st.st_mtim.tv_sec < now + 100);
	CHECK_EQ(st.st_atim.tv_sec, 1000000000);
	CHECK_EQ(utimensat(AT_FDCWD, "f", NULL, 0), 0);
	NEED(fstat(fd, &st) == 0);
	CHECK(st.st_atim.tv_sec >= now);

	CHECK_EQ(utimes("f", (struct timeval[2]){ { 10, 500000 }, { 20, 600000 } }), 0);
	times_are("f", 10, 500000000, 20, 600000000);
	CHECK_EQ(utime("f", &(struct utimbuf){ 30, 40 }), 0);
	times_are("f", 30, 0, 40, 0);

	NEED(symlink("f", "s") == 0);
	set[0] = set[1] = (struct timespec){ .tv_sec = 99 };
	CHECK_EQ(utimensat(AT_FDCWD, "s", set, AT_SYMLINK_NOFOLLOW), 0);
	times_are("s", 99, 0, 99, 0);
	times_are("f", 30, 0, 40, 0);
	CHECK_EQ(unlink("s"), 0);

	set[0].tv_nsec = 1000000000;
	CHECK_ERRNO(utimensat(AT_FDCWD, "f", set, 0), EINVAL);
	set[0].tv_nsec = 0;
	CHECK_ERRNO(utimensat(AT_FDCWD, "missing", set, 0), ENOENT);
	CHECK_ERRNO(utimensat(AT_FDCWD, "f", set, 1 << 30), EINVAL);
	CHECK_ERRNO(futimens(-1, set), EBADF);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
