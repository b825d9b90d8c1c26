/* sigset and its family: no function is taken for SIG_IGN or SIG_HOLD, whichever the program names
 * first. */
#include "../check.h"

#include <signal.h>
#include <unistd.h>

#pragma clang diagnostic ignored "-Wdeprecated-declarations"

static volatile sig_atomic_t first, second;

static void on_first(int number)
{
	(void)number;
	first++;
}

static void on_second(int number)
{
	(void)number;
	second++;
}

static int blocked(int number)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	return sigismember(&mask, number);
}

int main(void)
{
	void (*const handlers[])(int) = { on_first, on_second };
	struct sigaction action;

	for (int i = 0; i < 2; i++) {
		CHECK(handlers[i] != SIG_DFL && handlers[i] != SIG_IGN && handlers[i] != SIG_HOLD);
		CHECK(sigset(SIGUSR1 + 2 * i, handlers[i]) == SIG_DFL);
		CHECK_EQ(blocked(SIGUSR1 + 2 * i), 0);
		CHECK_EQ(sigaction(SIGUSR1 + 2 * i, NULL, &action), 0);
		CHECK(action.sa_handler == handlers[i]);
		CHECK_EQ(raise(SIGUSR1 + 2 * i), 0);
	}
	CHECK_EQ(first, 1);
	CHECK_EQ(second, 1);
	CHECK(sigset(SIGUSR1, SIG_HOLD) == on_first);
	CHECK_EQ(blocked(SIGUSR1), 1);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(first, 1);
	CHECK_EQ(sigrelse(SIGUSR1), 0);
	CHECK_EQ(first, 2);
	CHECK_EQ(sighold(SIGUSR1), 0);
	CHECK_EQ(blocked(SIGUSR1), 1);
	CHECK(sigset(SIGUSR1, on_second) == SIG_HOLD);
	CHECK_EQ(blocked(SIGUSR1), 0);
	CHECK_EQ(sigignore(SIGUSR1), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(second, 1);
	return check_done();
}
