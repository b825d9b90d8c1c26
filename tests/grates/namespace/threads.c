/* threads PREFIX: 16 threads open, write, read and close files below PREFIX and elsewhere, all at
 * once. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 16
#define ROUNDS  60

static const char *prefix;

static void *work(void *arg)
{
	long id = (long)arg;
	char in[128], out[128], text[32], back[32];

	sprintf(in, "%s/t%ld", prefix, id);
	sprintf(out, "/grates-test/t%ld.tmp", id);
	for (int round = 0; round < ROUNDS; round++) {
		int a = open(in, O_RDWR | O_CREAT | O_TRUNC, 0600), b = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600), d;
		int length = sprintf(text, "%ld.%d", id, round);

		if (a < 0 || b < 0 || write(a, text, length) != length || write(b, text, length) != length ||
		    (d = dup(round & 1 ? a : b)) < 0 || pread(d, back, sizeof back, 0) != length ||
		    memcmp(text, back, length) || close(a) || close(b) || pread(d, back, sizeof back, 0) != length ||
		    memcmp(text, back, length) || close(d)) {
			printf("thread %ld round %d: errno %d\n", id, round, errno);
			exit(1);
		}
	}
	unlink(in);
	unlink(out);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	prefix = argc > 1 ? argv[1] : "/tmp/in";
	mkdir(prefix, 0700);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
