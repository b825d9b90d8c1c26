/* RLIMIT_SIGPENDING is one limit for what waits for a process and for each of its threads. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { THREADS = 4, MOST = 60 };

static int ready[2], go[2];

static void *waits(void *unused)
{
	int tid = (int)syscall(SYS_gettid);
	char c;

	NEED(write(ready[1], &tid, sizeof tid) == sizeof tid);
	NEED(read(go[0], &c, 1) == 0);
	return unused;
}

static int sent_to(int tid)
{
	siginfo_t info = { .si_signo = SIGRTMIN, .si_code = SI_QUEUE };
	int sent = 0;

	info.si_pid = getpid();
	info.si_uid = getuid();
	while (sent < 2 * MOST &&
	    syscall(SYS_rt_tgsigqueueinfo, (long)getpid(), (long)tid, (long)SIGRTMIN, (long)&info) == 0)
		sent++;
	if (sent < 2 * MOST)
		CHECK_EQ(errno, EAGAIN);
	return sent;
}

/* On Linux those that wait for other processes of the user count as well. */
static rlim_t elsewhere(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[100];
	unsigned long used = 0;

	while (status && fgets(line, sizeof line, status))
		sscanf(line, "SigQ: %lu/", &used);
	if (status)
		fclose(status);
	return used;
}

int main(void)
{
	struct rlimit limit = { MOST, MOST };
	struct timespec now = { 0 };
	pthread_t threads[THREADS];
	int tids[THREADS], sent = 0, taken = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && pipe(ready) == 0 && pipe(go) == 0);
	limit.rlim_cur = limit.rlim_max += elsewhere();
	NEED(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
	for (int i = 0; i < THREADS; i++) {
		NEED(pthread_create(&threads[i], NULL, waits, NULL) == 0);
		NEED(read(ready[0], &tids[i], sizeof *tids) == sizeof *tids);
	}
	/* On Linux the user's other processes count as well, and may take theirs meanwhile. */
	for (int i = 0; i < THREADS; i++)
		sent += sent_to(tids[i]);
	while (taken < MOST && sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0)
		taken++;
	CHECK_EQ(errno, EAGAIN);
	CHECK(sent > 0 && sent + taken <= (int)limit.rlim_max);
	close(go[1]);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	/* The signals of threads that have ended are dropped: a thread can be joined a moment before
	 * that. */
	for (int tries = 0; tries < 2000; tries++) {
		while (taken < MOST && sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0)
			taken++;
		if (taken)
			break;
		usleep(1000);
	}
	CHECK(taken > 0);
	for (int i = 0; i < taken; i++)
		CHECK_EQ(sigtimedwait(&set, NULL, &now), SIGRTMIN);
	CHECK_ERRNO(sigtimedwait(&set, NULL, &now), EAGAIN);
	return check_done();
}
