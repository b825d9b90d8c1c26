/* Waiting for locks: 16 processes that take turns by record locks and by flock, one that is
 * interrupted, two that wait for each other. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define RACERS 16
#define TURNS  50

static int failures;

#define CHECK(x) \
	((x) ? (void)0 \
	     : (failures++, \
		   (void)printf("%s:%d: %s (errno %d %s)\n", __FILE__, __LINE__, #x, errno, strerror(errno))))

static int record(int fd, int cmd, short type, off_t start, off_t length)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };

	return fcntl(fd, cmd, &lock);
}

static int by_record(int fd, int take)
{
	return record(fd, F_SETLKW, take ? F_WRLCK : F_UNLCK, 0, 8);
}

static int by_open_file(int fd, int take)
{
	return record(fd, F_OFD_SETLKW, take ? F_WRLCK : F_UNLCK, 0, 8);
}

static int by_flock(int fd, int take)
{
	return flock(fd, take ? LOCK_EX : LOCK_UN);
}

static int add_up(int (*lock)(int, int))
{
	int fd = open("count", O_RDWR);
	long n;

	for (int i = 0; i < TURNS; i++) {
		if (lock(fd, 1) || pread(fd, &n, sizeof n, 0) != sizeof n)
			return 1;
		n++;
		if (pwrite(fd, &n, sizeof n, 0) != sizeof n || lock(fd, 0))
			return 1;
	}
	return 0;
}

static int ended_well(void)
{
	int status;

	return wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void racers(int (*lock)(int, int))
{
	int fd = open("count", O_RDWR | O_CREAT | O_TRUNC, 0600);
	long n = 0;

	CHECK(write(fd, &n, sizeof n) == sizeof n);
	for (int i = 0; i < RACERS; i++)
		if (!fork())
			_exit(add_up(lock));
	for (int i = 0; i < RACERS; i++)
		CHECK(ended_well());
	CHECK(pread(fd, &n, sizeof n, 0) == sizeof n && n == RACERS * TURNS);
	close(fd);
	unlink("count");
}

static void nothing(int sig)
{
	(void)sig;
}

static void interrupted(void)
{
	int fd = open("count", O_RDWR | O_CREAT, 0600), p[2];
	struct sigaction on_alarm = { .sa_handler = nothing };
	char byte;

	CHECK(!pipe(p) && !by_record(fd, 1));
	if (!fork()) {
		int mine = open("count", O_RDWR), wrong = 0;

		sigaction(SIGALRM, &on_alarm, NULL);
		alarm(1);
		wrong |= by_record(mine, 1) != -1 || errno != EINTR;
		/* An end without its lock, and whoever waits for one that ends goes on. */
		wrong |= write(p[1], "x", 1) != 1;
		wrong |= by_record(mine, 1) != 0;
		_exit(wrong);
	}
	CHECK(read(p[0], &byte, 1) == 1);
	usleep(20000);
	/* Closing any descriptor of the file gives the process's locks up. */
	close(open("count", O_RDONLY));
	CHECK(ended_well());
	close(p[0]);
	close(p[1]);
	close(fd);
	unlink("count");
}

/* Each has one byte and wants the other's. */
static void circle(void)
{
	int fd = open("count", O_RDWR | O_CREAT, 0600), p[2];
	char byte;

	CHECK(!pipe(p) && !record(fd, F_SETLK, F_WRLCK, 0, 1));
	if (!fork()) {
		if (record(fd, F_SETLK, F_WRLCK, 1, 1) || write(p[1], "x", 1) != 1)
			_exit(1);
		_exit(record(fd, F_SETLKW, F_WRLCK, 0, 1) != 0);
	}
	CHECK(read(p[0], &byte, 1) == 1);
	/* Until the other one waits this may have to wait, too; it never gets it. */
	usleep(100000);
	CHECK(record(fd, F_SETLKW, F_WRLCK, 1, 1) == -1 && errno == EDEADLK);
	CHECK(!record(fd, F_SETLK, F_UNLCK, 0, 1) && ended_well());
	CHECK(!record(fd, F_SETLKW, F_WRLCK, 0, 2));
	close(p[0]);
	close(p[1]);
	close(fd);
	unlink("count");
}

int main(void)
{
	racers(by_record);
	racers(by_open_file);
	racers(by_flock);
	interrupted();
	circle();
	return failures != 0;
}
