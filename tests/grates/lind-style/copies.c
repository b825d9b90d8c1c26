/* Behind copies_grate: see there. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 40
#define PAGE    4096

static int failures;

static void want(int line, long got, long wanted)
{
	if (got != wanted && ++failures)
		printf("%d: %ld, not %ld (errno %d)\n", line, got, wanted, errno);
}
#define WANT(got, wanted) want(__LINE__, got, wanted)
#define FAILS(call, error) \
	do { \
		errno = 0; \
		WANT(call, -1); \
		WANT(errno, error); \
	} while (0)

static void *meet(void *unused)
{
	(void)unused;
	return (void *)syscall(2102, THREADS);
}

static void copies(void)
{
	char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     *end = pages + 3 * PAGE;
	char out[64];

	munmap(end, PAGE);
	/* A string that ends with its page. */
	memset(pages, 's', 3 * PAGE);
	end[-1] = 0;
	WANT(syscall(2100, end - 4, 256, 1), 3);
	WANT(syscall(2100, end - 4, 4, 1), 3);
	FAILS(syscall(2100, end - 4, 3, 1), EFAULT);
	WANT(syscall(2100, pages, 3 * PAGE, 1), 3 * PAGE - 1);
	WANT(syscall(2100, pages + 1, 16000, 1), 3 * PAGE - 2);
	FAILS(syscall(2100, pages, 3 * PAGE - 1, 1), EFAULT);
	end[-1] = 's';
	FAILS(syscall(2100, pages, 16000, 1), EFAULT);
	FAILS(syscall(2100, end - 4, 16000, 1), EFAULT);
	/* Bytes. */
	WANT(syscall(2100, end - 4, 4, 0), 4);
	FAILS(syscall(2100, end - 4, 5, 0), EFAULT);
	WANT(syscall(2100, pages, 0, 0), 0);
	FAILS(syscall(2100, pages, 10, 3), EFAULT);
	FAILS(syscall(2100, 0, 10, 0), EFAULT);
	FAILS(syscall(2100, 16, 10, 1), EFAULT);
	memset(out, '.', sizeof out);
	WANT(syscall(2101, out, 40), 0);
	WANT(memcmp(out, "o.......oooooooooooooooooooooooooooooooo....", 44), 0);
	FAILS(syscall(2101, end - 8, 16), EFAULT);
}

int main(void)
{
	pthread_t threads[THREADS];
	void *result;
	char text[16] = "";
	int fd;

	copies();
	fd = open("/no/such/file", O_RDONLY);
	WANT(read(fd, text, sizeof text), 5);
	WANT(strcmp(text, "other"), 0);
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, meet, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		WANT(pthread_join(threads[i], &result), 0);
		WANT((long)result, 0);
	}
	WANT(syscall(SYS_exit_group, 3), 5);
	_exit(failures ? 1 : 42);
}
