/* RLIMIT_FSIZE: writes end at it, and beyond it are EFBIG where SIGXFSZ is ignored. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sendfile.h>

static volatile off_t where;
static volatile int stop;

static void *flip(void *unused)
{
	while (!stop) {
		where = 0;
		where = 5000;
	}
	return unused;
}

int main(void)
{
	struct rlimit limit;
	int fd = check_file("f", "");

	signal(SIGXFSZ, SIG_IGN);
	NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = 1000;
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK_EQ(pwrite(fd, "0123456789", 10, 995), 5);
	CHECK_ERRNO(pwrite(fd, "x", 1, 1000), EFBIG);
	CHECK_ERRNO(ftruncate(fd, 1001), EFBIG);
	CHECK_EQ(ftruncate(fd, 1000), 0);
	CHECK_EQ(pwrite(fd, "x", 1, 0), 1);

	/* Copies inside the kernel are subject to it too. */
	off_t at = 990, from = 0;
	int other = check_file("g", "0123456789abcdefghij");

	CHECK_EQ(copy_file_range(other, NULL, fd, &at, 20, 0), 10);
	CHECK_EQ(at, 1000);
	CHECK_ERRNO(copy_file_range(other, NULL, fd, &at, 10, 0), EFBIG);
	CHECK_EQ(lseek(fd, 995, SEEK_SET), 995);
	CHECK_EQ(sendfile(fd, other, &from, 20), 5);
	CHECK_EQ(from, 5);
	CHECK_ERRNO(sendfile(fd, other, &from, 20), EFBIG);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 1000);

	/* An offset that changes while it is looked at lets nothing past the limit. */
	pthread_t flipper;

	NEED(pthread_create(&flipper, NULL, flip, NULL) == 0);
	for (int i = 0; i < 5000; i++) {
		off_t begin = 0;

		copy_file_range(other, &begin, fd, (off_t *)&where, 10, 0);
	}
	stop = 1;
	CHECK_EQ(pthread_join(flipper, NULL), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 1000);
	close(other);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	CHECK_EQ(unlink("g"), 0);
	return check_done();
}
