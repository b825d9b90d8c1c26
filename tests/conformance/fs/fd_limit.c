/* RLIMIT_NOFILE bounds the numbers, and running out is EMFILE, not the end of anything. */
#include "check.h"

#include <sys/resource.h>
#include <sys/socket.h>

int main(void)
{
	struct rlimit limit;
	int fd, last = -1, pair[2];

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = 40;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	close(check_file("f", "x"));
	while ((fd = open("f", O_RDONLY)) >= 0)
		last = fd;
	CHECK_EQ(errno, EMFILE);
	CHECK_EQ(last, 39);
	CHECK_ERRNO(dup(0), EMFILE);
	CHECK_ERRNO(pipe(pair), EMFILE);
	CHECK_ERRNO(socket(AF_UNIX, SOCK_STREAM, 0), EMFILE);
	CHECK_ERRNO(dup2(last, 40), EBADF);
	CHECK_EQ(close(20), 0);
	CHECK_ERRNO(pipe(pair), EMFILE);
	CHECK_EQ(open("f", O_RDONLY), 20);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
