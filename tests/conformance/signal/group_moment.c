/* A signal to a group is one moment: who waits for another member never hears of its end before
 * having been sent the signal itself. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 50 };

/* Waits for a child of the same group, and goes on if it may. */
static void wait_for_member(int ready)
{
	int status;
	pid_t member;

	setpgid(0, 0);
	member = fork();
	if (member == 0) {
		if (write(ready, "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready);
	waitpid(member, &status, 0);
	_exit(0);
}

static volatile sig_atomic_t came;

static void note(int signal)
{
	(void)signal;
	came = 1;
}

/* The same with a handler: it has run when the wait is over. */
static void wait_with_handler(int ready)
{
	int status;
	pid_t member;

	setpgid(0, 0);
	member = fork();
	if (member == 0) {
		if (write(ready, "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = note, .sa_flags = SA_RESTART }, NULL);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	close(ready);
	waitpid(member, &status, 0);
	_exit(came ? 42 : 0);
}

static int ends(void (*act)(int), size_t writers)
{
	int ready[2], status = 0;
	char bytes[2];
	pid_t leader;

	NEED(pipe(ready) == 0);
	leader = fork();
	NEED(leader >= 0);
	if (leader == 0) {
		close(ready[0]);
		act(ready[1]);
	}
	close(ready[1]);
	for (size_t got = 0; got < writers; got++)
		NEED(read(ready[0], bytes, 1) == 1);
	close(ready[0]);
	CHECK_EQ(kill(-leader, SIGTERM), 0);
	CHECK_EQ(waitpid(leader, &status, 0), leader);
	return status;
}

int main(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		CHECK_EQ(ends(wait_for_member, 1), SIGTERM);
		CHECK_EQ(ends(wait_with_handler, 2), 42 << 8);
	}
	return check_done();
}
