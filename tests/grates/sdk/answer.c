/* The client of answer_grate.c. With an argument that many threads do it at the same time. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int failures;

#define CHECK(x) \
	((x) ? (void)0 \
	     : (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED), \
		   (void)printf("%d: %s (errno %d)\n", __LINE__, #x, errno)))

static int all(const char *bytes, char byte, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != byte)
			return 0;
	return 1;
}

static int fails(int kind, void *to, size_t length, int errnum)
{
	errno = 0;
	return read(kind, to, length) == -1 && errno == errnum;
}

static void *ask(void *unused)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int round = 0; round < 100; round++) {
		memset(page, '-', 8192);
		CHECK(
		    read(0, page + 1, 4000) == 100 && page[0] == '-' && all(page + 1, 'a', 4000) && page[4001] == '-');
		CHECK(fails(2, page, 10, EINVAL));
		CHECK(read(1, page + 1, 1) == 101 && page[1] == 'b' && page[2] == 'a');
		CHECK(fails(2, page, 10, EINVAL));
		CHECK(fails(3, page, 10, EFAULT));
		CHECK(fails(0, (void *)16, 10, EFAULT));
		CHECK(fails(4, page, 10, EFAULT));
		CHECK(fails(5, page, 10, EFAULT));
		CHECK(read(6, page, 10) == -1);
		CHECK(read(7, page, 10) == 107 && read(8, page, 10) == 108);
		CHECK(read(9, page, 10) == 109);
		memset(page + 4001, '-', 10);
		CHECK(read(11, page + 4001, 5) == 5 && all(page + 4001, 'l', 5) && page[4006] == '-' &&
		    read(12, page, 0) == 0);
		CHECK(read(13, page + 4001, 5) == 5 && all(page + 4001, 'n', 5) && page[4006] == '-' &&
		    read(12, page, 0) == 0);
		CHECK(fails(14, page + 4001, 5, EFAULT) && fails(15, page + 4001, 5, EFAULT) && read(12, page, 0) == 0);
		CHECK(fails(11, (void *)16, 10, EFAULT) && read(12, page, 0) == 0 &&
		    fails(13, (void *)16, 10, EFAULT) && read(12, page, 0) == 0);
		page[4001] = '-';
		memcpy(page + 4100, "time", 4);
		CHECK(read(10, page + 4100, 4) == 110 && fails(10, (void *)16, 4, EFAULT));
		CHECK(page[0] == '-' && all(page + 2, 'a', 3999) && page[4001] == '-');
	}
	munmap(page + 4096, 4096);
	CHECK(fails(0, page + 4000, 200, EFAULT));
	/* As much as there is room for, and the lock comes back all the same. */
	memset(page, '-', 4096);
	CHECK(read(11, page + 4000, 200) == 96 && all(page + 4000, 'l', 96) && page[3999] == '-' &&
	    read(12, page, 0) == 0);
	CHECK(read(13, page + 4000, 200) == 96 && all(page + 4000, 'n', 96) && page[3999] == '-' &&
	    read(12, page, 0) == 0);
	munmap(page, 4096);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	int count = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < count && i < 16; i++)
		CHECK(!pthread_create(&threads[i], NULL, ask, NULL));
	ask(NULL);
	for (int i = 0; i < count && i < 16; i++)
		pthread_join(threads[i], NULL);
	return failures != 0;
}
