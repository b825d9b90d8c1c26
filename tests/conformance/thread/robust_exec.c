/* Tests that a holder of a robust mutex that runs another program, aborts or is killed leaves it to
 * the next one, also to one that waits. */
#include "../check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t *mutex;

static pid_t owner(const char *self, char how)
{
	int p[2];
	char byte;
	pid_t child;

	NEED(pipe(p) == 0);
	child = fork();
	if (!child) {
		close(p[0]);
		if (pthread_mutex_lock(mutex) || write(p[1], "l", 1) != 1)
			_exit(9);
		/* The parent is to wait for the lock before it is left. */
		nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
		if (how == 'x')
			execl(self, self, "sleep", (char *)NULL);
		if (how == 'a')
			abort();
		if (how == 'k')
			raise(SIGKILL);
		_exit(0);
	}
	close(p[1]);
	NEED(read(p[0], &byte, 1) == 1);
	close(p[0]);
	return child;
}

int main(int argc, char **argv)
{
	const char *ways = "xak0";
	pthread_mutexattr_t attributes;

	if (argc == 2) {
		nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
		return 0;
	}
	mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(mutex != MAP_FAILED);
	NEED(pthread_mutexattr_init(&attributes) == 0);
	NEED(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
	NEED(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
	NEED(pthread_mutex_init(mutex, &attributes) == 0);
	for (; *ways; ways++) {
		pid_t child = owner(argv[0], *ways);

		alarm(10);
		if (!CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD))
			printf("way %c\n", *ways);
		alarm(0);
		if (*ways == 'x')
			CHECK_EQ(waitpid(child, NULL, WNOHANG), 0);
		CHECK_EQ(pthread_mutex_consistent(mutex), 0);
		CHECK_EQ(pthread_mutex_unlock(mutex), 0);
		CHECK_EQ(waitpid(child, NULL, 0), child);
	}
	waitpid(owner(argv[0], 'k'), NULL, 0);
	CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_unlock(mutex), 0);
	CHECK_EQ(pthread_mutex_lock(mutex), ENOTRECOVERABLE);
	return check_done();
}
