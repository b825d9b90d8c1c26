/* SIGKILL ends a child whatever it does, though it never comes to a place where it would look for
 * signals. */
#include "check.h"
#include "busy.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE ((size_t)32 << 20)

static volatile char *ready;
static pthread_mutex_t *lock;

static void copy(void)
{
	copy_memory(SIZE, ready);
}

static void *copy_too(void *unused)
{
	copy();
	return unused;
}

static void copy_with_a_lock(void)
{
	pthread_t thread;

	pthread_mutex_lock(lock);
	pthread_create(&thread, 0, copy_too, 0);
	copy();
}

static void killed(void (*act)(void))
{
	int status = 0;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		/* A child that copies has done so once by the time it is killed. */
		if (act == spin || act == throw)
			*ready = 1;
		act();
		_exit(1);
	}
	while (!*ready)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, SIGKILL);
	*ready = 0;
}

int main(void)
{
	pthread_mutexattr_t robust;

	ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(ready != MAP_FAILED);
	lock = (pthread_mutex_t *)(ready + 64);
	pthread_mutexattr_init(&robust);
	pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(pthread_mutex_init(lock, &robust), 0);
	killed(spin);
	killed(copy);
	killed(throw);
	killed(copy_with_a_lock);
	/* It left a word for the next owner of its lock. */
	CHECK_EQ(pthread_mutex_lock(lock), EOWNERDEAD);
	CHECK_EQ(munmap((void *)ready, 4096), 0);
	return check_done();
}
