/* Descriptors of signalfd that many processes share: what waits for one that has ended, or was
 * taken, is not shown any more. */
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum { FILES = 50, CHILDREN = 20 };

static int files[FILES];

static int readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0);
}

static int becomes_readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5000);
}

static void none_readable(void)
{
	for (int i = 0; i < FILES; i++)
		CHECK_EQ(readable(files[i]), 0);
}

/* Leaves with a signal waiting. */
static _Noreturn void child(int ready, int go)
{
	struct signalfd_siginfo info;
	int failed = 0;
	char c;

	raise(SIGUSR1);
	raise(SIGUSR2);
	for (int i = 0; i < FILES; i++)
		failed += becomes_readable(files[i]) != 1;
	failed += read(files[FILES - 1], &info, sizeof info) != sizeof info || info.ssi_signo != SIGUSR1;
	failed += becomes_readable(files[0]) != 1;
	failed += write(ready, "", 1) != 1 || read(go, &c, 1) != 0;
	_exit(failed);
}

int main(void)
{
	struct signalfd_siginfo info;
	int ready[2], go[2], status;
	pid_t children[CHILDREN];
	sigset_t set;
	char c;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	for (int i = 0; i < FILES; i++)
		NEED((files[i] = signalfd(-1, &set, SFD_NONBLOCK)) >= 0);
	none_readable();
	NEED(pipe(ready) == 0 && pipe(go) == 0);
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		NEED(children[i] >= 0);
		if (children[i] == 0) {
			close(go[1]);
			child(ready[1], go[0]);
		}
	}
	for (int i = 0; i < CHILDREN; i++)
		CHECK_EQ(read(ready[0], &c, 1), 1);
	CHECK_ERRNO(read(files[0], &info, sizeof info), EAGAIN);
	close(go[1]);
	for (int i = 0; i < CHILDREN; i++) {
		CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
		CHECK_EQ(status, 0);
	}
	none_readable();

	raise(SIGUSR1);
	for (int i = 0; i < FILES; i++)
		CHECK_EQ(readable(files[i]), 1);
	CHECK_EQ(read(files[0], &info, sizeof info), sizeof info);
	none_readable();
	raise(SIGUSR2);
	signal(SIGUSR2, SIG_IGN);
	none_readable();

	/* Another set, while something waits. */
	raise(SIGUSR1);
	sigdelset(&set, SIGUSR1);
	CHECK_EQ(signalfd(files[0], &set, 0), files[0]);
	CHECK_EQ(readable(files[0]), 0);
	CHECK_EQ(readable(files[1]), 1);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(signalfd(files[0], &set, 0), files[0]);
	CHECK_EQ(readable(files[0]), 1);
	return check_done();
}
