/* opens TIMES [THREADS PROCESSES]: opens a path of its own so many times, in so many threads and
 * processes. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int times;

static void *run(void *name)
{
	char path[64];

	for (int i = 0; i < times; i++) {
		snprintf(path, sizeof path, "/none/%s/%d", (char *)name, i);
		if (open(path, O_RDONLY) >= 0)
			abort();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0, processes = argc > 3 ? atoi(argv[3]) : 0, wrong = 0;
	pthread_t ids[16];
	char names[16][8];

	times = atoi(argv[1]);
	for (int i = 0; i < processes; i++) {
		snprintf(names[i], sizeof *names, "p%d", i);
		if (!fork()) {
			run(names[i]);
			_exit(0);
		}
	}
	for (int i = 0; i < threads; i++) {
		snprintf(names[i], sizeof *names, "t%d", i);
		wrong += pthread_create(&ids[i], NULL, run, names[i]);
	}
	if (!threads)
		run("main");
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < processes; i++) {
		int status;

		wrong += wait(&status) < 0 || status;
	}
	printf("wrong %d\n", wrong);
	return 0;
}
