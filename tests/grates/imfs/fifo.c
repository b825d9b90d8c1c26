/* Fifos: both ends wait for each other, readers and writers for data and room; ends, signals and
 * poll tell; 16 writers, and a reader for all. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS  16
#define MESSAGES 200
#define MESSAGE  100

static int failures;

#define CHECK(x) \
	((x) ? (void)0 \
	     : (failures++, \
		   (void)printf("%s:%d: %s (errno %d %s)\n", __FILE__, __LINE__, #x, errno, strerror(errno))))

static int ended_well(void)
{
	int status;

	return wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

static int says(int fd, short asked)
{
	struct pollfd p = { fd, asked, 0 };

	return poll(&p, 1, 0) < 0 ? -1 : p.revents;
}

/* Opening waits for the other end, on each side. */
static void meets(int child_flags, int our_flags)
{
	int fd;

	if (!fork()) {
		usleep(50000);
		fd = open("p", child_flags);
		_exit(fd < 0 ||
		    (child_flags == O_WRONLY ? write(fd, "hello", 5) != 5 : read(fd, (char[5]){ 0 }, 5) != 5));
	}
	CHECK((fd = open("p", our_flags)) >= 0);
	if (our_flags == O_RDONLY) {
		char text[8] = { 0 };

		CHECK(read(fd, text, 8) == 5 && !strcmp(text, "hello"));
		CHECK(read(fd, text, 8) == 0);
	} else
		CHECK(write(fd, "hello", 5) == 5);
	CHECK(ended_well());
	close(fd);
}

static void nothing(int sig)
{
	(void)sig;
}

static void alone(void)
{
	struct sigaction on_alarm = { .sa_handler = nothing };
	int in, out;

	CHECK(open("p", O_WRONLY | O_NONBLOCK) < 0 && errno == ENXIO);
	sigaction(SIGALRM, &on_alarm, NULL);
	alarm(1);
	CHECK(open("p", O_WRONLY) < 0 && errno == EINTR);
	/* An open that was given up does not count as a writer, nor as an end for a reader. */
	CHECK((in = open("p", O_RDONLY | O_NONBLOCK)) >= 0 && read(in, (char[1]){ 0 }, 1) == 0);
	CHECK(says(in, POLLIN | POLLOUT) == POLLOUT || says(in, POLLIN) == 0);
	CHECK((out = open("p", O_WRONLY)) >= 0 && !fcntl(in, F_SETFL, 0));
	alarm(1);
	CHECK(read(in, (char[1]){ 0 }, 1) < 0 && errno == EINTR);
	CHECK(!close(in));
	signal(SIGPIPE, SIG_IGN);
	CHECK(write(out, "x", 1) < 0 && errno == EPIPE);
	signal(SIGPIPE, SIG_DFL);
	if (!fork()) {
		write(out, "x", 1);
		_exit(0);
	}
	int status;

	CHECK(wait(&status) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	close(out);
}

static void ready(void)
{
	static char block[65536];
	int in = open("p", O_RDONLY | O_NONBLOCK), out = open("p", O_WRONLY | O_NONBLOCK), e = epoll_create1(0), n;
	struct epoll_event want = { EPOLLIN | EPOLLET, { .u64 = 7 } }, got;
	struct timeval now = { 0, 0 };
	struct stat st, path;
	fd_set set;

	CHECK(in >= 0 && out >= 0 && !epoll_ctl(e, EPOLL_CTL_ADD, in, &want));
	CHECK(says(in, POLLIN) == 0 && says(out, POLLOUT) == POLLOUT && epoll_wait(e, &got, 1, 0) == 0);
	CHECK(read(in, block, 1) < 0 && errno == EAGAIN);
	CHECK(write(out, "ab", 2) == 2 && says(in, POLLIN) == POLLIN);
	CHECK(epoll_wait(e, &got, 1, 0) == 1 && got.data.u64 == 7 && epoll_wait(e, &got, 1, 0) == 0);
	CHECK(write(out, "c", 1) == 1 && epoll_wait(e, &got, 1, 0) == 1);
	CHECK(!ioctl(in, FIONREAD, &n) && n == 3);
	FD_ZERO(&set);
	FD_SET(in, &set);
	CHECK(select(in + 1, &set, NULL, NULL, &now) == 1 && FD_ISSET(in, &set));
	CHECK(read(in, block, 10) == 3 && !memcmp(block, "abc", 3) && says(in, POLLIN) == 0);
	CHECK(fcntl(in, F_GETPIPE_SZ) == 65536);
	CHECK(write(out, block, sizeof block) == sizeof block && says(out, POLLOUT) == 0 && says(in, POLLIN) == POLLIN);
	CHECK(write(out, block, 1) < 0 && errno == EAGAIN);
	CHECK(read(in, block, 4096) == 4096 && says(out, POLLOUT) == POLLOUT);
	CHECK(write(out, block, 5000) == 4096 && read(in, block, sizeof block) == sizeof block);
	CHECK(lseek(in, 0, SEEK_SET) < 0 && errno == ESPIPE && pread(in, block, 1, 0) < 0 && errno == ESPIPE);
	CHECK(pwrite(out, block, 1, 0) < 0 && errno == ESPIPE && write(in, block, 1) < 0 && errno == EBADF &&
	    read(out, block, 1) < 0 && errno == EBADF);
	CHECK(!fstat(in, &st) && S_ISFIFO(st.st_mode) && !stat("p", &path) && st.st_ino == path.st_ino && !st.st_size);
	CHECK(!close(out) && says(in, POLLIN) & (POLLIN | POLLHUP) && read(in, block, 1) == 0);
	CHECK((out = open("p", O_WRONLY | O_NONBLOCK)) >= 0 && says(in, POLLIN) == 0 && read(in, block, 1) < 0 &&
	    errno == EAGAIN);
	close(in);
	close(out);
	close(e);
	/* With both closed what was in it is gone. */
	in = open("p", O_RDWR);
	CHECK(in >= 0 && write(in, "both", 4) == 4 && read(in, block, 10) == 4 && write(in, "gone", 4) == 4);
	close(in);
	in = open("p", O_RDONLY | O_NONBLOCK);
	CHECK(in >= 0 && read(in, block, 10) == 0);
	close(in);
}

/* Messages of up to PIPE_BUF stay in one piece whoever writes meanwhile. */
static void racers(void)
{
	char message[MESSAGE], got[MESSAGE];
	int in, counts[WRITERS] = { 0 };
	ssize_t n;

	for (int i = 0; i < WRITERS; i++)
		if (!fork()) {
			int out = open("p", O_WRONLY);
			struct iovec two[2] = { { message, 10 }, { message + 10, MESSAGE - 10 } };

			memset(message, 'a' + i, sizeof message);
			for (int j = 0; j < MESSAGES; j++)
				if ((j & 1 ? writev(out, two, 2) : write(out, message, MESSAGE)) != MESSAGE)
					_exit(1);
			_exit(0);
		}
	CHECK((in = open("p", O_RDONLY)) >= 0);
	for (int all = 0; all < WRITERS * MESSAGES;) {
		size_t have = 0;

		while (have < MESSAGE && (n = read(in, got + have, MESSAGE - have)) > 0)
			have += (size_t)n;
		/* All writers that came so far are gone: wait for the next. */
		if (!have && !n) {
			close(in);
			in = open("p", O_RDONLY);
			continue;
		}
		if (have != MESSAGE || memchr(got, got[0], 1) != got || got[0] < 'a' || got[0] >= 'a' + WRITERS)
			break;
		for (int i = 1; i < MESSAGE; i++)
			if (got[i] != got[0]) {
				failures++;
				printf("a message in pieces\n");
				break;
			}
		counts[got[0] - 'a']++;
		all++;
	}
	for (int i = 0; i < WRITERS; i++) {
		CHECK(ended_well());
		CHECK(counts[i] == MESSAGES);
	}
	close(in);
}

/* More than it holds: the writer waits for the reader. */
static void stream(void)
{
	static char block[200000];
	size_t got = 0;
	ssize_t n;
	int fd;

	if (!fork()) {
		fd = open("p", O_WRONLY);
		for (size_t i = 0; i < sizeof block; i++)
			block[i] = (char)(i * 2654435761u >> 13);
		_exit(write(fd, block, sizeof block) != sizeof block);
	}
	CHECK((fd = open("p", O_RDONLY)) >= 0);
	while ((n = read(fd, block + got, 7777 < sizeof block - got ? 7777 : sizeof block - got)) > 0)
		got += (size_t)n;
	CHECK(got == sizeof block);
	for (size_t i = 0; i < sizeof block; i++)
		if (block[i] != (char)(i * 2654435761u >> 13)) {
			CHECK(!"the bytes are others");
			break;
		}
	close(fd);
	CHECK(ended_well());
}

int main(void)
{
	CHECK(!mkfifo("p", 0600));
	meets(O_WRONLY, O_RDONLY);
	meets(O_RDONLY, O_WRONLY);
	alone();
	ready();
	stream();
	racers();
	CHECK(!unlink("p"));
	return failures != 0;
}
