/* SIGXFSZ, and the limit in all the ways of writing. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

static volatile sig_atomic_t got;

static void note(int number)
{
	got = number;
}

int main(void)
{
	struct iovec parts[2] = { { (char[]){ "0123456789" }, 10 }, { (char[]){ "abcdef" }, 6 } };
	struct rlimit limit;
	int fd = check_file("f", ""), status, p[2];
	pid_t child;

	NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = 100;
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	signal(SIGXFSZ, note);
	CHECK_EQ(lseek(fd, 95, SEEK_SET), 95);
	CHECK_EQ(write(fd, "0123456789", 10), 5);
	CHECK_EQ(got, 0);
	CHECK_ERRNO(write(fd, "x", 1), EFBIG);
	CHECK_EQ(got, SIGXFSZ);
	CHECK_EQ(write(fd, "x", 0), 0);
	CHECK_EQ(lseek(fd, 98, SEEK_SET), 98);
	CHECK_EQ(writev(fd, parts, 2), 2);
	CHECK_ERRNO(pwritev(fd, parts, 2, 100), EFBIG);
	CHECK_EQ(pwritev(fd, parts, 2, 80), 16);
	CHECK_ERRNO(truncate("f", 101), EFBIG);
	CHECK_EQ(truncate("f", 50), 0);
	CHECK_EQ(fcntl(fd, F_SETFL, O_APPEND), 0);
	CHECK_EQ(pwrite(fd, "0123456789", 10, 0), 10);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 60);
	/* Pipes have no size. */
	NEED(pipe(p) == 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(write(p[1], "0123456789", 10), 10);
	signal(SIGXFSZ, SIG_DFL);
	NEED((child = fork()) >= 0);
	if (!child) {
		ftruncate(fd, 1000);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
