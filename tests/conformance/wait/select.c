/* select and pselect. */
#include "check.h"

#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>

int main(void)
{
	fd_set in, out, odd;
	struct timeval tv;
	struct timespec ts;
	int p[2], high = -1;

	NEED(pipe(p) == 0 && (high = fcntl(p[0], F_DUPFD, 200)) >= 200);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&odd);
	FD_SET(p[0], &in);
	FD_SET(high, &in);
	FD_SET(p[1], &out);
	FD_SET(p[1], &odd);
	CHECK_EQ(select(high + 1, &in, &out, &odd, &(struct timeval){ 0 }), 1);
	CHECK(!FD_ISSET(p[0], &in) && !FD_ISSET(high, &in));
	CHECK(FD_ISSET(p[1], &out) && !FD_ISSET(p[1], &odd));

	CHECK_EQ(write(p[1], "x", 1), 1);
	FD_SET(p[0], &in);
	FD_SET(high, &in);
	CHECK_EQ(select(high + 1, &in, NULL, NULL, NULL), 2);
	CHECK(FD_ISSET(p[0], &in) && FD_ISSET(high, &in));
	/* Beyond the first argument nothing is looked at. */
	FD_ZERO(&in);
	FD_SET(high, &in);
	CHECK_EQ(select(high, &in, NULL, NULL, &(struct timeval){ 0, 1000 }), 0);
	CHECK_EQ(read(p[0], (char[1]){ 0 }, 1), 1);

	/* Linux leaves the time that was not slept; musl keeps that from its callers, so ask the
	 * kernel. */
	FD_ZERO(&in);
	FD_SET(p[0], &in);
	tv = (struct timeval){ 0, 20000 };
	CHECK_EQ(syscall(SYS_select, (long)p[0] + 1, &in, NULL, NULL, &tv), 0);
	CHECK(!FD_ISSET(p[0], &in));
	CHECK(tv.tv_sec == 0 && tv.tv_usec == 0);
	tv = (struct timeval){ 100, 0 };
	FD_SET(p[1], &out);
	CHECK_EQ(syscall(SYS_select, (long)p[1] + 1, NULL, &out, NULL, &tv), 1);
	CHECK(tv.tv_sec == 99 || tv.tv_sec == 100);

	memset(&ts, 0xff, sizeof ts);
	ts.tv_sec = 0, ts.tv_nsec = 1000000;
	FD_ZERO(&in);
	FD_SET(p[0], &in);
	CHECK_EQ(pselect(p[0] + 1, &in, NULL, NULL, &ts, NULL), 0);
	CHECK(ts.tv_sec == 0 && ts.tv_nsec == 1000000);

	FD_SET(150, &in);
	CHECK_ERRNO(select(151, &in, NULL, NULL, &(struct timeval){ 0 }), EBADF);
	CHECK_ERRNO(select(-1, NULL, NULL, NULL, &(struct timeval){ 0 }), EINVAL);
	CHECK_ERRNO(select(0, NULL, NULL, NULL, &(struct timeval){ -1, 0 }), EINVAL);
	CHECK_EQ(select(0, NULL, NULL, NULL, &(struct timeval){ 0, 1000 }), 0);
	return check_done();
}
