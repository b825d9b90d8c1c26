/* Megabytes in one call, through files and vectors, byte by byte the same. */
#include "check.h"

#include <sys/mman.h>
#include <sys/uio.h>

#define SIZE (8 << 20)

static unsigned char pattern(size_t i)
{
	return (unsigned char)(i * 31 + (i >> 12));
}

int main(void)
{
	unsigned char *out = malloc(SIZE), *in = malloc(SIZE), *mapped;
	struct iovec pieces[64];
	int fd = check_file("f", "");
	size_t wrong = 0;

	NEED(out && in);
	for (size_t i = 0; i < SIZE; i++)
		out[i] = pattern(i);
	CHECK_EQ(write(fd, out, SIZE), SIZE);
	CHECK_EQ(pread(fd, in, SIZE, 0), SIZE);
	CHECK_EQ(memcmp(in, out, SIZE), 0);
	for (int i = 0; i < 64; i++)
		pieces[i] = (struct iovec){ in + i * (SIZE / 64), SIZE / 64 };
	memset(in, 0, SIZE);
	CHECK_EQ(preadv(fd, pieces, 64, 1), SIZE - 1);
	CHECK_EQ(memcmp(in, out + 1, SIZE - 1), 0);
	mapped = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	NEED(mapped != MAP_FAILED);
	for (size_t i = 0; i < SIZE; i++)
		wrong += mapped[i] != pattern(i);
	CHECK_EQ(wrong, 0);
	/* From a mapping of the file into the file. */
	CHECK_EQ(pwrite(fd, mapped, SIZE / 2, SIZE), SIZE / 2);
	CHECK_EQ(pread(fd, in, SIZE / 2, SIZE), SIZE / 2);
	CHECK_EQ(memcmp(in, out, SIZE / 2), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
