/* Sixteen threads, and cages that are born and run programs meanwhile, call geteuid while
 * turns_grate changes who answers: never the kernel. With `find` it goes on until the kernel
 * did. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 16

static long wrong, others;
static int over;
static const char *self;

static void look(void)
{
	long got = syscall(SYS_geteuid);

	if (got == 4343)
		__atomic_fetch_add(&others, 1, __ATOMIC_RELAXED);
	else if (got != 4242)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *race(void *number)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		for (int i = 0; i < 50; i++)
			look();
		if ((long)number % 4 == 0) {
			int status = 1;
			pid_t child = fork();

			if (!child) {
				look();
				if ((long)number)
					_exit(wrong != 0);
				execl(self, self, "again", (char *)NULL);
				_exit(3);
			}
			if (child < 0 || waitpid(child, &status, 0) != child || status)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int find = argc > 1 && !strcmp(argv[1], "find");
	pthread_t threads[THREADS];

	self = argv[0];
	look();
	if (argc > 1 && !find)
		return wrong != 0;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, race, (void *)i);
	/* Until the other answer was seen many times, so that there was a race. */
	do
		if (syscall(SYS_getpgid, 0))
			wrong++;
	while (
	    __atomic_load_n(&others, __ATOMIC_RELAXED) < 20000 || (find && !__atomic_load_n(&wrong, __ATOMIC_RELAXED)));
	over = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("wrong %ld\n", wrong);
	return 0;
}
