/* mkfifo and mknod of a fifo: opened without waiting, and from both ends in one process. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int says(int fd, short asked, int wait)
{
	struct pollfd p[2] = { { -1, POLLIN, 0 }, { fd, asked, 0 } };

	CHECK_EQ(poll(p, 2, wait), p[1].revents != 0);
	return p[1].revents;
}

/* The result of poll for an end whose other end is closed. */
static void lonely_ends(void)
{
	char block[4096] = { 0 };
	struct timespec none = { 0, 0 };
	struct pollfd one;
	int in, out, status;

	NEED((in = open("p", O_RDONLY | O_NONBLOCK)) >= 0 && (out = open("p", O_WRONLY | O_NONBLOCK)) >= 0);
	CHECK_EQ(says(in, POLLIN, 0), 0);
	CHECK_EQ(says(out, POLLOUT, 0), POLLOUT);
	CHECK_EQ(write(out, "ab", 2), 2);
	CHECK_EQ(says(in, POLLIN, 0), POLLIN);
	close(out);
	CHECK_EQ(says(in, POLLIN, 0), POLLIN | POLLHUP);
	CHECK_EQ(read(in, block, 2), 2);
	CHECK_EQ(says(in, POLLIN, 0), POLLHUP);
	CHECK_EQ(says(in, POLLIN | POLLRDNORM, -1), POLLHUP);
	one = (struct pollfd){ in, POLLIN, 0 };
	CHECK_EQ(ppoll(&one, 1, &none, NULL), 1);
	CHECK_EQ(one.revents, POLLHUP);
	NEED((out = open("p", O_WRONLY | O_NONBLOCK)) >= 0);
	CHECK_EQ(says(in, POLLIN, 0), 0);
	if (!fork()) {
		close(in);
		usleep(30000);
		_exit(0);
	}
	close(out);
	CHECK_EQ(says(in, POLLIN, -1), POLLHUP);
	CHECK(wait(&status) > 0 && !status);
	NEED((out = open("p", O_WRONLY | O_NONBLOCK)) >= 0);
	close(in);
	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(says(out, POLLOUT, 0), POLLOUT | POLLERR);
	CHECK_ERRNO(write(out, "x", 1), EPIPE);
	NEED((in = open("p", O_RDONLY | O_NONBLOCK)) >= 0);
	CHECK_EQ(says(out, POLLOUT, 0), POLLOUT);
	while (write(out, block, sizeof block) > 0)
		;
	CHECK_EQ(says(out, POLLOUT, 0), 0);
	close(in);
	CHECK_EQ(says(out, POLLOUT, 0), POLLERR);
	close(out);
}

int main(void)
{
	char text[4] = { 0 };
	struct stat st;
	int in, out;

	NEED(mkfifo("p", 0600) == 0);
	NEED(stat("p", &st) == 0);
	CHECK(S_ISFIFO(st.st_mode));
	CHECK_ERRNO(mkfifo("p", 0600), EEXIST);
	CHECK_ERRNO(open("p", O_WRONLY | O_NONBLOCK), ENXIO);
	NEED((in = open("p", O_RDONLY | O_NONBLOCK)) >= 0);
	CHECK_EQ(read(in, text, 1), 0);
	NEED((out = open("p", O_WRONLY)) >= 0);
	CHECK_ERRNO(read(in, text, 1), EAGAIN);
	CHECK_EQ(write(out, "abc", 3), 3);
	CHECK_EQ(read(in, text, 4), 3);
	CHECK_STR(text, "abc");
	close(in);
	close(out);
	lonely_ends();
	CHECK_EQ(unlink("p"), 0);
	return check_done();
}
