/* Leases: given, or refused as by a Linux whose settings say that it gives none. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

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

static sigset_t only(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	return set;
}

/* A child that opens the file, and says so then. It does not keep the lease's own descriptor. */
static pid_t opener(int leased, int flags, int *said)
{
	int p[2];
	pid_t child;

	NEED(pipe(p) == 0);
	child = fork();
	if (child == 0) {
		int fd = close(leased) ? -1 : open("f", flags);

		_exit(write(p[1], fd < 0 ? "-" : "+", 1) != 1);
	}
	close(p[1]);
	*said = p[0];
	return child;
}

static void has_opened(pid_t child, int said)
{
	char c = 0;
	int status;

	CHECK_EQ(read(said, &c, 1), 1);
	CHECK_EQ(c, '+');
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	close(said);
}

static void check_broken_by(int kind, int flags, int by_nobody, int by_other)
{
	sigset_t set = only(SIGIO), other = only(SIGRTMIN);
	int fd = open("f", kind == F_RDLCK ? O_RDONLY : O_RDWR), said;
	siginfo_t info;
	pid_t child;

	NEED(fd >= 0);
	CHECK_EQ(fcntl(fd, F_SETLEASE, kind), 0);
	CHECK_EQ(fcntl(fd, F_GETOWN), getpid());
	CHECK_ERRNO(open("f", flags | O_NONBLOCK), EWOULDBLOCK);
	CHECK_EQ(sigwaitinfo(&set, &info), SIGIO);
	CHECK_EQ(fcntl(fd, F_GETLEASE), by_nobody);
	child = opener(fd, flags, &said);
	CHECK_EQ(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	has_opened(child, said);
	CHECK_EQ(fcntl(fd, F_SETSIG, SIGRTMIN), 0);
	CHECK_EQ(fcntl(fd, F_SETLEASE, kind), 0);
	child = opener(fd, flags, &said);
	CHECK_EQ(sigwaitinfo(&other, &info), SIGRTMIN);
	CHECK_EQ(info.si_fd, fd);
	CHECK_EQ(info.si_code, 3);
	CHECK_EQ(fcntl(fd, F_GETLEASE), by_other);
	CHECK_EQ(poll(&(struct pollfd){ .fd = said, .events = POLLIN }, 1, 0), 0);
	close(fd);
	has_opened(child, said);
}

static void check_broken(void)
{
	int fd = open("f", O_RDWR), again;
	sigset_t before;
	pid_t child;
	int status;

	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_RDLCK), EAGAIN);
	CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_UNLCK), EAGAIN);
	again = open("f", O_RDONLY);
	CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_WRLCK), EAGAIN);
	close(again);
	CHECK_EQ(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	close(fd);
	check_broken_by(F_RDLCK, O_WRONLY, F_UNLCK, F_UNLCK);
	check_broken_by(F_WRLCK, O_RDONLY, F_RDLCK, F_RDLCK);
	check_broken_by(F_WRLCK, O_RDWR, F_UNLCK, F_UNLCK);
	CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	if (getuid() != 0)
		return;
	child = fork();
	if (child == 0) {
		fd = open("f", O_RDONLY);
		_exit(setuid(65534) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == -1 && errno == EACCES ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void check_leases(int on)
{
	int fd, p[2], there = 0;

	NEED((fd = open("f", O_RDONLY)) >= 0 && pipe(p) == 0);
	CHECK_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
	if (!on) {
		CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_RDLCK), EINVAL);
		CHECK_ERRNO(fcntl(fd, F_SETLEASE, F_WRLCK), EINVAL);
	} else if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
		CHECK_EQ(fcntl(fd, F_GETLEASE), F_RDLCK);
		CHECK_EQ(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
		there = 1;
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
	if (there)
		check_broken();
}

int main(void)
{
	close(check_file("f", "text"));
	alarm(20);
	NEED(chmod("f", 0644) == 0);
	check_leases(enabled("/proc/sys/fs/leases-enable"));
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
