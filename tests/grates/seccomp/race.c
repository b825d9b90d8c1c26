/*
 * Opens a path that another thread changes back and forth between one that is allowed and one that
 * is not, and reads what it got. Prints how often it was let in, how often not, and how often it
 * read the forbidden file.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char path[64];
static atomic_int done;
static const char *good, *bad;

static void *flip(void *x)
{
	while (!atomic_load(&done)) {
		memcpy(path, bad, strlen(bad) + 1);
		atomic_signal_fence(memory_order_seq_cst);
		memcpy(path, good, strlen(good) + 1);
		atomic_signal_fence(memory_order_seq_cst);
	}
	return x;
}

int main(int argc, char **argv)
{
	int in = 0, refused = 0, secret = 0, other = 0;
	pthread_t thread;
	char letter;

	if (argc < 3)
		return 2;
	good = argv[1];
	bad = argv[2];
	strcpy(path, good);
	pthread_create(&thread, NULL, flip, NULL);
	for (int i = 0; i < 20000 || !in || !refused; i++) {
		int fd = (int)syscall(SYS_open, path, O_RDONLY, 0);

		if (fd < 0) {
			refused += errno == EACCES;
			other += errno != EACCES && errno != ENOENT;
			continue;
		}
		in++;
		secret += read(fd, &letter, 1) == 1 && letter == 's';
		close(fd);
	}
	atomic_store(&done, 1);
	pthread_join(thread, NULL);
	printf("in %d refused %d secret %d other %d\n", in > 0, refused > 0, secret, other);
	return 0;
}
