/* A handler that waits ends with its client's signals, with its client, and when it is woken. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((import_module("lind"), import_name("syscall"))) long long raw(int nr, unsigned long long a,
    unsigned long long b, unsigned long long c, unsigned long long d, unsigned long long e, unsigned long long f);

static volatile int signals;

static void on_alarm(int sig)
{
	(void)sig;
	signals++;
}

static void *waiter(void *unused)
{
	(void)unused;
	return (void *)(size_t)raw(902, 0, 0, 0, 0, 0, 0);
}

#define SAME(what, wanted) \
	do { \
		long long got_ = (what); \
		if (got_ != (wanted)) { \
			printf("line %d: %s is %lld\n", __LINE__, #what, got_); \
			return 1; \
		} \
	} while (0)

int main(void)
{
	struct sigaction act = { .sa_handler = on_alarm };
	pthread_t threads[16];
	void *result;
	int status;
	pid_t child;

	SAME(raw(902, 20, 0, 0, 0, 0, 0), -ETIMEDOUT);
	sigaction(SIGALRM, &act, NULL);
	ualarm(20000, 0);
	SAME(raw(902, 0, 0, 0, 0, 0, 0), -EINTR);
	SAME(signals, 1);
	if (!(child = fork()))
		_exit((int)raw(902, 0, 0, 0, 0, 0, 0));
	usleep(20000);
	kill(child, SIGKILL);
	SAME(waitpid(child, &status, 0), child);
	SAME(status, SIGKILL);
	for (int i = 0; i < 16; i++)
		pthread_create(&threads[i], NULL, waiter, NULL);
	raw(903, 0, 0, 0, 0, 0, 0);
	for (int i = 0; i < 16; i++) {
		pthread_join(threads[i], &result);
		SAME((size_t)result, 7);
	}
	return 0;
}
