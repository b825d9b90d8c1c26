/* fcntl(F_NOTIFY): signals about what happens in a directory. */
#include "check.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define MULTISHOT    (int)0x80000000u
#define POLL_MESSAGE 3

static int number;

/* How many signals come, once nothing comes any more; `last` is the last one. */
static int signals(siginfo_t *last)
{
	struct timespec patience = { 0, 150000000 };
	sigset_t set;
	int count = 0;

	sigemptyset(&set);
	sigaddset(&set, number);
	while (sigtimedwait(&set, last, &patience) == number)
		count++;
	return count;
}

static int told(void)
{
	siginfo_t info;

	return signals(&info) > 0;
}

/* Each event, and the changes that it is not about. */
static void check_events(int folder)
{
	char c = 'x';
	int fd;

	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_CREATE | MULTISHOT), 0);
	fd = open("d/new", O_CREAT | O_RDWR, 0600);
	NEED(fd >= 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(write(fd, &c, 1), 1);
	CHECK_EQ(fchmod(fd, 0640), 0);
	CHECK_EQ(unlink("d/new"), 0);
	CHECK_EQ(told(), 0);
	CHECK_EQ(mkdir("d/sub", 0700), 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(rename("f", "d/f"), 0);
	CHECK_EQ(told(), 1);
	/* In a directory below is not in it. */
	close(check_file("d/sub/deep", ""));
	CHECK_EQ(unlink("d/sub/deep"), 0);
	CHECK_EQ(told(), 0);
	close(fd);
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_DELETE | MULTISHOT), 0);
	close(check_file("d/new", ""));
	CHECK_EQ(told(), 0);
	CHECK_EQ(unlink("d/new"), 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(rename("d/f", "f"), 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(rmdir("d/sub"), 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
	close(check_file("d/new", "text"));
	fd = open("d/new", O_RDWR);
	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_MODIFY | MULTISHOT), 0);
	CHECK_EQ(read(fd, &c, 1), 1);
	CHECK_EQ(told(), 0);
	CHECK_EQ(write(fd, &c, 1), 1);
	CHECK_EQ(told(), 1);
	CHECK_EQ(ftruncate(fd, 0), 0);
	CHECK_EQ(told(), 1);
	/* Events of one more call are added to those before. */
	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_ATTRIB | MULTISHOT), 0);
	CHECK_EQ(fchmod(fd, 0600), 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(write(fd, "more", 4), 4);
	CHECK_EQ(told(), 1);
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
	CHECK_EQ(write(fd, "more", 4), 4);
	CHECK_EQ(told(), 0);
	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_ACCESS | MULTISHOT), 0);
	CHECK_EQ(pread(fd, &c, 1, 0), 1);
	CHECK_EQ(told(), 1);
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_RENAME | MULTISHOT), 0);
	CHECK_EQ(rename("d/new", "d/old"), 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
	CHECK_EQ(unlink("d/old"), 0);
	CHECK_EQ(told(), 0);
	close(fd);
}

/* Without DN_MULTISHOT it is over after the first event. */
static void check_once(int folder)
{
	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_CREATE), 0);
	close(check_file("d/1", ""));
	CHECK_EQ(told(), 1);
	close(check_file("d/2", ""));
	CHECK_EQ(told(), 0);
	CHECK_EQ(unlink("d/1") | unlink("d/2"), 0);
}

/* The signal that F_SETSIG chooses says which descriptor it is about. */
static void check_particulars(int folder)
{
	int other = open("d", O_RDONLY | O_DIRECTORY);
	siginfo_t info = { 0 };

	NEED(other >= 0);
	CHECK_EQ(fcntl(folder, F_GETOWN), getpid());
	CHECK_EQ(fcntl(folder, F_SETSIG, number), 0);
	CHECK_EQ(fcntl(other, F_SETSIG, number), 0);
	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_DELETE | MULTISHOT), 0);
	CHECK_EQ(fcntl(other, F_NOTIFY, DN_CREATE | MULTISHOT), 0);
	close(check_file("d/1", ""));
	CHECK_EQ(signals(&info), 1);
	CHECK_EQ(info.si_fd, other);
	CHECK_EQ(info.si_code, POLL_MESSAGE);
	CHECK_EQ(unlink("d/1"), 0);
	CHECK_EQ(signals(&info), 1);
	CHECK_EQ(info.si_fd, folder);
	/* With the open file it ends. */
	close(other);
	close(check_file("d/1", ""));
	CHECK_EQ(signals(&info), 0);
	CHECK_EQ(unlink("d/1"), 0);
	CHECK_EQ(signals(&info), 1);
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
}

/* Somebody else does it. */
static void check_child(int folder)
{
	pid_t child;
	int status;

	CHECK_EQ(fcntl(folder, F_NOTIFY, DN_CREATE | DN_DELETE | MULTISHOT), 0);
	if (!(child = fork()))
		_exit(mkdir("d/child", 0700) || rmdir("d/child"));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(told(), 1);
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0), 0);
}

int main(void)
{
	int folder, fd = -1;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGRTMIN);
	alarm(60);
	close(check_file("f", "text"));
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && mkdir("d", 0700) == 0);
	NEED((folder = open("d", O_RDONLY | O_DIRECTORY)) >= 0 && (fd = open("f", O_RDONLY)) >= 0);
	CHECK_ERRNO(fcntl(fd, F_NOTIFY, DN_CREATE), ENOTDIR);
	CHECK_ERRNO(fcntl(999, F_NOTIFY, DN_CREATE), EBADF);
	/* There is nothing that cannot be given up. */
	CHECK_EQ(fcntl(folder, F_NOTIFY, 0) | fcntl(fd, F_NOTIFY, 0), 0);
	close(fd);
	number = SIGIO;
	check_events(folder);
	check_once(folder);
	check_child(folder);
	number = SIGRTMIN;
	check_particulars(folder);
	close(folder);
	CHECK_EQ(unlink("f") | rmdir("d"), 0);
	return check_done();
}
