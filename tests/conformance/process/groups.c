/* Process groups and sessions: who is in which, signals to a whole group, stops and continuations
 * of a group. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include "telling.h"

static volatile sig_atomic_t seen;

static void count(int sig)
{
	(void)sig;
	seen++;
}

static void nothing(int sig)
{
	(void)sig;
}

static int status_of(pid_t pid, int options)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, options), pid);
	return status;
}

/* A child in a group: 0 its own, which begins so. It waits for signals. */
static pid_t waiting(pid_t group)
{
	int ready[2];
	pid_t pid = fork_telling(ready);

	if (pid == 0) {
		if (setpgid(0, group))
			_exit(1);
		tell(ready, getpid());
		for (;;)
			pause();
	}
	NEED(hear(ready) == pid);
	hear_no_more(ready);
	return pid;
}

/* kill(0): the sender too. */
static void to_own_group(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		pid_t member, outsider;

		NEED(setpgid(0, 0) == 0);
		CHECK_EQ(getpgrp(), getpid());
		member = waiting(getpid());
		outsider = waiting(0);
		CHECK_EQ(kill(0, 0), 0);
		signal(SIGTERM, count);
		CHECK_EQ(kill(0, SIGTERM), 0);
		CHECK_EQ(seen, 1);
		signal(SIGTERM, SIG_IGN);
		CHECK_EQ(WTERMSIG(status_of(member, 0)), SIGTERM);
		CHECK_EQ(waitpid(outsider, NULL, WNOHANG), 0);
		CHECK_EQ(kill(-outsider, SIGINT), 0);
		CHECK_EQ(WTERMSIG(status_of(outsider, 0)), SIGINT);
		CHECK_ERRNO(kill(-outsider, SIGINT), ESRCH);
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(status_of(pid, 0), 0);
}

/* The calls of timeout(1): it makes a group of its own and sets an alarm, and then sends the group
 * SIGTERM and SIGCONT. */
static void as_timeout(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		sigset_t block, before;
		pid_t monitored;

		NEED(setpgid(0, 0) == 0);
		signal(SIGALRM, count);
		signal(SIGCHLD, nothing);
		monitored = fork();
		NEED(monitored >= 0);
		if (monitored == 0) {
			sleep(100);
			_exit(0);
		}
		alarm(1);
		sigemptyset(&block);
		sigaddset(&block, SIGALRM);
		sigaddset(&block, SIGCHLD);
		sigprocmask(SIG_BLOCK, &block, &before);
		seen = 0;
		for (int told = 0; waitpid(monitored, NULL, WNOHANG) == 0;) {
			sigsuspend(&before);
			if (seen && !told++) {
				signal(SIGTERM, SIG_IGN);
				CHECK_EQ(kill(monitored, SIGTERM), 0);
				CHECK_EQ(kill(0, SIGTERM), 0);
				CHECK_EQ(kill(monitored, SIGCONT), 0);
				CHECK_EQ(kill(0, SIGCONT), 0);
			}
		}
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(status_of(pid, 0), 0);
}

static void members(void)
{
	pid_t leader = waiting(0), member = waiting(leader), dead = waiting(0);

	CHECK_EQ(getpgid(leader), leader);
	CHECK_EQ(getpgid(member), leader);
	CHECK_EQ(getsid(member), getsid(0));
	CHECK_EQ(getpgid(getppid()) > 0, 1);
	CHECK_EQ(getsid(getppid()) > 0, 1);
	kill(dead, SIGKILL);
	CHECK_EQ(WTERMSIG(status_of(dead, 0)), SIGKILL);
	CHECK_ERRNO(getpgid(dead), ESRCH);
	CHECK_ERRNO(setpgid(member, 99999999), EPERM);
	CHECK_ERRNO(setpgid(member, -1), EINVAL);
	CHECK_ERRNO(setpgid(99999999, 0), ESRCH);
	CHECK_EQ(setpgid(member, getpgrp()), 0);
	CHECK_EQ(getpgid(member), getpgrp());
	CHECK_EQ(setpgid(member, leader), 0);
	CHECK_ERRNO(waitpid(-leader - 100000, NULL, WNOHANG), ECHILD);
	CHECK_EQ(waitpid(-leader, NULL, WNOHANG), 0);
	kill(-leader, SIGKILL);
	for (int i = 0; i < 2; i++) {
		int status = 0;
		pid_t pid = waitpid(-leader, &status, 0);
		CHECK(pid == leader || pid == member);
		CHECK_EQ(WTERMSIG(status), SIGKILL);
	}
	CHECK_ERRNO(waitpid(-leader, NULL, 0), ECHILD);
}

static void sessions(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		pid_t child, parent = getppid(), session = getsid(0);

		CHECK_EQ(getsid(parent), session);
		CHECK_EQ(setsid(), getpid());
		CHECK_EQ(getsid(0), getpid());
		CHECK_EQ(getpgrp(), getpid());
		CHECK_EQ(getsid(parent), session);
		CHECK_ERRNO(setsid(), EPERM);
		CHECK_ERRNO(setpgid(0, 0), EPERM);
		CHECK_ERRNO(setpgid(0, getpgid(parent)), EPERM);
		child = waiting(0);
		CHECK_EQ(getsid(child), getpid());
		kill(child, SIGKILL);
		status_of(child, 0);
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(status_of(pid, 0), 0);
}

static void *spin(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* Many stops and continuations of a group whose members have threads that compute and threads that
 * wait. */
static void stops(void)
{
	int ready[2];
	char byte;
	pid_t pid, group = 0;

	NEED(pipe(ready) == 0);
	for (int i = 0; i < 2; i++) {
		pid = fork();
		NEED(pid >= 0);
		if (pid == 0) {
			int stop = 0;
			pthread_t thread;

			setpgid(0, group);
			if (pthread_create(&thread, NULL, spin, &stop))
				_exit(1);
			write(ready[1], "x", 1);
			for (;;)
				pause();
		}
		if (!group)
			group = pid;
		NEED(read(ready[0], &byte, 1) == 1);
		CHECK_EQ(getpgid(pid), group);
	}
	close(ready[0]);
	close(ready[1]);
	for (int round = 0; round < 20; round++) {
		int status;

		CHECK_EQ(kill(-group, SIGSTOP), 0);
		for (int i = 0; i < 2; i++) {
			CHECK(waitpid(-group, &status, WUNTRACED) > 0);
			CHECK(WIFSTOPPED(status));
		}
		CHECK_EQ(kill(-group, SIGCONT), 0);
		for (int i = 0; i < 2; i++) {
			CHECK(waitpid(-group, &status, WCONTINUED) > 0);
			CHECK(WIFCONTINUED(status));
		}
	}
	/* Continued before all threads stand; the last stop counts. */
	for (int round = 0; round < 200; round++) {
		CHECK_EQ(kill(-group, SIGSTOP), 0);
		CHECK_EQ(kill(-group, SIGCONT), 0);
	}
	while (waitpid(-group, NULL, WUNTRACED | WCONTINUED | WNOHANG) > 0)
		;
	/* Continued again for sure: the stop that follows is one of its own. */
	CHECK_EQ(kill(-group, SIGSTOP), 0);
	for (int i = 0; i < 2; i++)
		CHECK(waitpid(-group, NULL, WUNTRACED) > 0);
	CHECK_EQ(kill(-group, SIGKILL), 0);
	for (int i = 0; i < 2; i++) {
		int status;
		CHECK(waitpid(-group, &status, 0) > 0);
		CHECK_EQ(WTERMSIG(status), SIGKILL);
	}
}

/* A child whose parent has gone does not stay a zombie: its new parent waits for it. */
static void orphans(void)
{
	int kept[2];
	char byte;
	pid_t pid = fork_telling(kept);

	if (pid == 0) {
		pid_t orphan, parent = getpid();

		for (int i = 0; i < 3; i++) {
			orphan = fork();
			if (orphan == 0) {
				/* The first ends before its parent, unwaited; the others after it. */
				if (i) {
					while (getppid() == parent && i == 2)
						usleep(1000);
					usleep(10000);
				}
				_exit(0);
			}
		}
		usleep(5000);
		_exit(0);
	}
	CHECK_EQ(status_of(pid, 0), 0);
	/* The end of the file: all have gone. */
	CHECK_EQ(read(kept[0], &byte, 1), 0);
	close(kept[0]);
}

/*
 * All of it in a session of our own, below its leader: who started this program may be in another
 * namespace, where its session has no number that could be told here.
 */
static void in_own_session(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid)
		exit(WEXITSTATUS(status_of(pid, 0)));
	NEED(setsid() == getpid());
	/* A shell may have had it ignored. */
	signal(SIGINT, SIG_DFL);
	pid = fork();
	NEED(pid >= 0);
	if (pid)
		exit(WEXITSTATUS(status_of(pid, 0)));
}

int main(void)
{
	in_own_session();
	to_own_group();
	as_timeout();
	members();
	sessions();
	stops();
	orphans();
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
	return check_done();
}
