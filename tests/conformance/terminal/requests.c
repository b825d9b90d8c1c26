/* ioctl requests that change nothing but the terminal: exclusive use, the other layouts of its
 * settings, its line discipline, and TIOCSIG. */
#include "check.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

struct settings2 {
	unsigned iflag, oflag, cflag, lflag;
	unsigned char line, cc[19];
	unsigned ispeed, ospeed;
};

struct settings0 {
	unsigned short iflag, oflag, cflag, lflag;
	unsigned char line, cc[8];
};

#define GETS2  0x802c542aU
#define SETS2  0x402c542bU
#define SETSW2 0x402c542cU
#define SETSF2 0x402c542dU

static void check_settings(int tty)
{
	struct settings2 two = { 0 }, again = { 0 };
	struct settings0 zero = { 0 };
	struct termios usual;

	CHECK_EQ(sizeof two, 44);
	NEED(tcgetattr(tty, &usual) == 0);
	CHECK_EQ(ioctl(tty, GETS2, &two), 0);
	CHECK_EQ(two.lflag, usual.c_lflag);
	CHECK_EQ(two.cc[VINTR], usual.c_cc[VINTR]);
	CHECK_EQ(two.ospeed, 38400);
	two.lflag ^= ECHO;
	two.cflag = (two.cflag & ~(unsigned)CBAUD) | 0010000; /* BOTHER: a speed as a number. */
	two.ispeed = two.ospeed = 12345;
	CHECK_EQ(ioctl(tty, SETS2, &two), 0);
	CHECK_EQ(ioctl(tty, GETS2, &again), 0);
	CHECK_EQ(again.ospeed, 12345);
	CHECK_EQ(again.lflag, two.lflag);
	CHECK_EQ(ioctl(tty, SETSW2, &two), 0);
	CHECK_EQ(ioctl(tty, SETSF2, &two), 0);
	CHECK_EQ(ioctl(tty, TCGETA, &zero), 0);
	CHECK_EQ(zero.lflag, two.lflag & 0xffff);
	zero.lflag ^= ECHO;
	CHECK_EQ(ioctl(tty, TCSETA, &zero), 0);
	NEED(tcgetattr(tty, &usual) == 0);
	CHECK_EQ(usual.c_lflag & 0xffff, zero.lflag);
	CHECK_EQ(ioctl(tty, TCSETAW, &zero) | ioctl(tty, TCSETAF, &zero), 0);
	CHECK_ERRNO(ioctl(tty, GETS2, (void *)8), EFAULT);
	CHECK_ERRNO(ioctl(tty, SETS2, (void *)8), EFAULT);
}

static void check_exclusive(int tty)
{
	int on = -1;

	CHECK_EQ(ioctl(tty, TIOCGEXCL, &on), 0);
	CHECK_EQ(on, 0);
	CHECK_EQ(ioctl(tty, TIOCEXCL), 0);
	CHECK_EQ(ioctl(tty, TIOCGEXCL, &on), 0);
	CHECK_EQ(on, 1);
	CHECK_EQ(ioctl(tty, TIOCNXCL), 0);
	CHECK_EQ(ioctl(tty, TIOCGEXCL, &on), 0);
	CHECK_EQ(on, 0);
}

static void check_discipline(int tty)
{
	int number = -1;

	CHECK_EQ(ioctl(tty, TIOCGETD, &number), 0);
	CHECK_EQ(number, 0);
	CHECK_EQ(ioctl(tty, TIOCSETD, &number), 0);
	number = 12345;
	CHECK_ERRNO(ioctl(tty, TIOCSETD, &number), EINVAL);
	CHECK_ERRNO(ioctl(tty, TIOCSETD, (void *)8), EFAULT);
	CHECK_EQ(ioctl(tty, TIOCGSOFTCAR, &number), 0);
}

static volatile sig_atomic_t got;

static void note(int number)
{
	got = number;
}

static void check_signal(int master, const char *name)
{
	int ready[2], status;
	char byte;
	pid_t pid;

	NEED(pipe(ready) == 0);
	if (!(pid = fork())) {
		sigset_t block, none;

		alarm(10);
		signal(SIGINT, note);
		sigemptyset(&none), sigemptyset(&block), sigaddset(&block, SIGINT);
		sigprocmask(SIG_BLOCK, &block, NULL);
		if (setsid() < 0 || open(name, O_RDWR) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		while (!got)
			sigsuspend(&none);
		_exit(got != SIGINT);
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	CHECK_ERRNO(ioctl(master, 0x40045436U, SIGKILL), EINVAL);
	CHECK_EQ(ioctl(master, 0x40045436U, SIGINT), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	close(ready[0]), close(ready[1]);
}

int main(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), tty, file, n;

	if (master < 0 || grantpt(master) || unlockpt(master))
		check_skip("no pseudoterminals here");
	NEED((tty = open(ptsname(master), O_RDWR | O_NOCTTY)) >= 0);
	check_settings(tty);
	check_exclusive(tty);
	check_discipline(tty);
	CHECK_ERRNO(ioctl(tty, 0x40045436U, SIGINT), ENOTTY);
	check_signal(master, ptsname(master));
	file = check_file("f", "");
	for (unsigned i = 0; i < 5; i++)
		CHECK_ERRNO(ioctl(file, (unsigned[]){ GETS2, SETS2, TIOCEXCL, TIOCGETD, TIOCGEXCL }[i], &n), ENOTTY);
	close(file), close(tty), close(master);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
