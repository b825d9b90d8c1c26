/* Tests who gets which signal when a session loses its terminal: its leader ends, gives it up, or
 * the master is closed. */
#include "../check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum way { ENDS, GIVES_UP, LOSES, LOSES_AND_ENDS };

static int own, master;
static char terminal[64];

static void nap(int milliseconds)
{
	nanosleep(&(struct timespec){ .tv_nsec = milliseconds * 1000000L }, NULL);
}

static void heard(int number)
{
	char letter = number == SIGHUP ? 'H' : 'C';

	if (write(own, &letter, 1) != 1)
		_exit(9);
}

static void listens(int to)
{
	own = to;
	signal(SIGHUP, heard);
	signal(SIGCONT, heard);
}

static pid_t job(int to, int ready)
{
	pid_t pid = fork();

	if (pid == 0) {
		close(master);
		setpgid(0, 0);
		listens(to);
		if (write(ready, "r", 1) != 1)
			_exit(9);
		/* Naps end with each signal. */
		for (int i = 0; i < 30; i++)
			nap(10);
		_exit(0);
	}
	setpgid(pid, pid);
	return pid;
}

static void leader(enum way way, int (*letters)[2], int *ready, int *closed)
{
	char byte;
	pid_t front;
	int tty;

	close(closed[1]);
	setsid();
	tty = open(terminal, O_RDWR);
	front = job(letters[1][1], ready[1]);
	signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(tty, front);
	job(letters[2][1], ready[1]);
	if (read(ready[0], &byte, 1) != 1 || read(ready[0], &byte, 1) != 1 || tcgetpgrp(tty) != front)
		_exit(1);
	listens(letters[0][1]);
	if (way == GIVES_UP)
		ioctl(tty, TIOCNOTTY);
	if (way == LOSES || way == LOSES_AND_ENDS) {
		/* The last one to close it hangs up. */
		if (read(closed[0], &byte, 1) != 0)
			_exit(2);
		close(master);
	}
	if (way != ENDS && way != LOSES_AND_ENDS) {
		close(letters[1][1]), close(letters[2][1]);
		/* The others first: by its end they hear more. */
		while (wait(NULL) > 0 || errno == EINTR)
			;
	}
	_exit(0);
}

static void told(enum way way, const char *of_leader, const char *in_front, const char *behind)
{
	const char *wanted[] = { of_leader, in_front, behind };
	int letters[3][2], ready[2], closed[2], status;
	pid_t pid;

	master = posix_openpt(O_RDWR | O_NOCTTY);
	NEED(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	snprintf(terminal, sizeof terminal, "%s", ptsname(master));
	for (int i = 0; i < 3; i++)
		NEED(pipe(letters[i]) == 0);
	NEED(pipe(ready) == 0 && pipe(closed) == 0);
	pid = fork();
	if (pid == 0)
		leader(way, letters, ready, closed);
	if (way == LOSES || way == LOSES_AND_ENDS)
		close(master);
	close(closed[0]), close(closed[1]);
	for (int i = 0; i < 3; i++)
		close(letters[i][1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	for (int i = 0; i < 3; i++) {
		char text[16];
		ssize_t got = 0, n;

		while ((n = read(letters[i][0], text + got, sizeof text - 1 - (size_t)got)) > 0)
			got += n;
		text[got] = 0;
		/* Both may have waited: then the later one's handler runs first. */
		if (!strcmp(text, "CH"))
			strcpy(text, "HC");
		if (!CHECK_STR(text, wanted[i]))
			printf("way %d, place %d\n", way, i);
		close(letters[i][0]);
	}
	close(ready[0]), close(ready[1]);
	if (way != LOSES && way != LOSES_AND_ENDS)
		close(master);
}

int main(void)
{
	told(ENDS, "", "H", "");
	told(GIVES_UP, "", "HC", "");
	told(LOSES, "HC", "", "");
	told(LOSES_AND_ENDS, "HC", "HC", "");
	return check_done();
}
