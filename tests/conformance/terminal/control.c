/* A session and its terminal: who gets it, which group is in front, what those in the background
 * may do, what ^C does. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

static int master;
static pid_t outer;
static char name[64];
static volatile sig_atomic_t got;

static void note(int number)
{
	got = number;
}

static void patience(void)
{
	nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
}

/* The state of a child: its status, or stopped. */
static int became(pid_t child)
{
	int status = -1;

	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	return status;
}

/* In a child of the session's leader, in a group of its own that is not in front. */
static void background(int tty)
{
	char byte;
	pid_t child;
	int status;

	NEED((child = fork()) >= 0);
	if (!child) {
		setpgid(0, 0);
		read(tty, &byte, 1);
		_exit(1);
	}
	setpgid(child, child);
	status = became(child);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTIN);
	/* In front it may read, and what it was doing goes on. */
	CHECK_EQ(tcsetpgrp(tty, child), 0);
	CHECK_EQ(tcgetpgrp(tty), child);
	CHECK_EQ(kill(-child, SIGCONT), 0);
	CHECK_EQ(write(master, "\n", 1), 1);
	status = became(child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	signal(SIGTTOU, SIG_IGN);
	CHECK_EQ(tcsetpgrp(tty, getpgrp()), 0);
	signal(SIGTTOU, SIG_DFL);

	NEED((child = fork()) >= 0);
	if (!child) {
		struct termios settings;

		setpgid(0, 0);
		if (tcgetattr(tty, &settings))
			_exit(2);
		tcsetattr(tty, TCSANOW, &settings);
		_exit(3);
	}
	setpgid(child, child);
	status = became(child);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTOU);
	kill(-child, SIGKILL);
	became(child);

	/* Writing is allowed unless TOSTOP is set; reading with SIGTTIN ignored is EIO. */
	NEED((child = fork()) >= 0);
	if (!child) {
		setpgid(0, 0);
		signal(SIGTTIN, SIG_IGN);
		_exit(write(tty, "w", 1) == 1 && read(tty, &byte, 1) == -1 && errno == EIO ? 0 : 4);
	}
	setpgid(child, child);
	status = became(child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		setpgid(0, 0);
		write(tty, "w", 1);
		_exit(5);
	}
	{
		struct termios settings;

		NEED(tcgetattr(tty, &settings) == 0);
		settings.c_lflag |= TOSTOP;
		CHECK_EQ(tcsetattr(tty, TCSANOW, &settings), 0);
	}
	status = became(child);
	if (WIFEXITED(status)) {
		/* It was faster than the setting. */
		NEED((child = fork()) >= 0);
		if (!child) {
			setpgid(0, 0);
			write(tty, "w", 1);
			_exit(5);
		}
		status = became(child);
	}
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTOU);
	kill(-child, SIGKILL);
	became(child);
}

/* Keys that mean signals, for the group in front. */
static void keys(int tty)
{
	char text[16];
	pid_t child;
	int status;

	signal(SIGINT, note);
	got = 0;
	CHECK_EQ(write(master, "ab\003", 3), 3);
	for (int i = 0; i < 500 && !got; i++)
		patience();
	CHECK_EQ(got, SIGINT);
	got = 0;
	signal(SIGQUIT, note);
	CHECK_EQ(write(master, "\034", 1), 1);
	for (int i = 0; i < 500 && !got; i++)
		patience();
	CHECK_EQ(got, SIGQUIT);
	/* Quoted it is a character. */
	got = 0;
	CHECK_EQ(write(master, "\026\003\n", 3), 3);
	CHECK_EQ(read(tty, text, sizeof text), 2);
	CHECK_EQ(text[0], 3);
	CHECK_EQ(got, 0);
	got = 0;
	signal(SIGWINCH, note);
	CHECK_EQ(ioctl(master, TIOCSWINSZ, &(struct winsize){ 10, 20, 0, 0 }), 0);
	for (int i = 0; i < 500 && !got; i++)
		patience();
	CHECK_EQ(got, SIGWINCH);
	got = 0;
	CHECK_EQ(ioctl(master, TIOCSWINSZ, &(struct winsize){ 10, 20, 0, 0 }), 0);
	patience();
	CHECK_EQ(got, 0);

	NEED((child = fork()) >= 0);
	if (!child) {
		setpgid(0, 0);
		signal(SIGTTOU, SIG_IGN);
		signal(SIGINT, SIG_DFL);
		tcsetpgrp(tty, getpid());
		write(master, "\032", 1);
		for (;;)
			patience();
	}
	status = became(child);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
	kill(child, SIGCONT);
	CHECK_EQ(write(master, "\003", 1), 1);
	status = became(child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	signal(SIGTTOU, SIG_IGN);
	CHECK_EQ(tcsetpgrp(tty, getpgrp()), 0);
}

/* The leader of a new session. */
static int leader(void)
{
	int tty, again;

	CHECK_EQ(open("/dev/tty", O_RDWR), -1);
	CHECK_EQ(errno, ENXIO);
	NEED((tty = open(name, O_RDWR | O_NOCTTY)) >= 0);
	CHECK_ERRNO(tcgetpgrp(tty), ENOTTY);
	CHECK_ERRNO(ioctl(tty, TIOCGSID, &again), ENOTTY);
	CHECK_ERRNO(ioctl(tty, TIOCNOTTY), ENOTTY);
	CHECK_EQ(ioctl(tty, TIOCSCTTY, 0), 0);
	CHECK_EQ(ioctl(tty, TIOCSCTTY, 0), 0);
	CHECK_EQ(tcgetpgrp(tty), getpgrp());
	CHECK_EQ(tcgetsid(tty), getpid());
	CHECK_EQ(tcgetpgrp(master), getpgrp());
	CHECK_ERRNO(tcsetpgrp(tty, 999999), ESRCH);
	CHECK_ERRNO(tcsetpgrp(tty, -1), EINVAL);
	CHECK_ERRNO(tcsetpgrp(tty, outer), EPERM);
	NEED((again = open("/dev/tty", O_RDWR)) >= 0);
	CHECK_EQ(tcgetpgrp(again), getpgrp());
	CHECK_EQ(write(again, "t", 1), 1);
	close(again);
	background(tty);
	keys(tty);
	signal(SIGHUP, SIG_IGN);
	signal(SIGCONT, note);
	CHECK_EQ(ioctl(tty, TIOCNOTTY), 0);
	CHECK_ERRNO(tcgetpgrp(tty), ENOTTY);
	CHECK_EQ(open("/dev/tty", O_RDWR), -1);
	/* Opening one gets it, too. */
	close(tty);
	NEED((tty = open(name, O_RDWR)) >= 0);
	CHECK_EQ(tcgetpgrp(tty), getpgrp());
	return check_done();
}

/* The end of a leader tells those in front. */
static void end_of_session(void)
{
	int p[2], tty;
	char byte = 0;
	pid_t child;

	NEED(pipe(p) == 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		setsid();
		tty = open(name, O_RDWR);
		if (tcgetpgrp(tty) != getpid())
			_exit(1);
		if (!fork()) {
			signal(SIGHUP, note);
			write(p[1], "r", 1);
			while (!got)
				patience();
			write(p[1], got == SIGHUP ? "h" : "?", 1);
			_exit(0);
		}
		read(p[0], &byte, 1);
		_exit(0);
	}
	CHECK_EQ(became(child), 0);
	CHECK_EQ(read(p[0], &byte, 1), 1);
	CHECK_EQ(byte, 'h');
}

int main(void)
{
	pid_t child;

	/* Of our own: that of who started us may have no number here. */
	setpgid(0, 0);
	outer = getpgrp();
	if ((master = posix_openpt(O_RDWR | O_NOCTTY)) < 0)
		check_skip("no /dev/ptmx here");
	NEED(grantpt(master) == 0 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof name) == 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		NEED(setsid() == getpid());
		CHECK_ERRNO(setsid(), EPERM);
		_exit(leader());
	}
	CHECK_EQ(became(child), 0);
	end_of_session();
	close(master);
	return check_done();
}
