/* RLIMIT_FSIZE: writes end at it, and beyond it are EFBIG where SIGXFSZ is ignored. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>

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
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
