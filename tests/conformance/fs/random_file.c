/* A file under 3,000 random operations, held against an array in memory after each: the way of
 * fsx. */
#include "check.h"

#include <sys/stat.h>
#include <sys/uio.h>

#define LIMIT 300000

static unsigned char model[LIMIT], buffer[LIMIT];
static long size;
static unsigned long long seed = 20261121;

static long below(long bound)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (long)((seed >> 33) % (unsigned long long)bound);
}

static void grow(long to)
{
	if (to > size)
		size = to;
}

static int do_write(int fd, long at, long length)
{
	for (long i = 0; i < length; i++)
		buffer[i] = (unsigned char)below(256);
	memcpy(model + at, buffer, (size_t)length);
	if (length)
		grow(at + length);
	if (below(2))
		return pwrite(fd, buffer, (size_t)length, at) == length;
	return lseek(fd, at, SEEK_SET) == at && write(fd, buffer, (size_t)length) == length &&
	    lseek(fd, 0, SEEK_CUR) == at + length;
}

static int do_writev(int fd, long at, long length)
{
	struct iovec pieces[3] = { { buffer, (size_t)length / 3 }, { buffer + length / 3, (size_t)length / 3 },
		{ buffer + length / 3 * 2, (size_t)(length - length / 3 * 2) } };

	for (long i = 0; i < length; i++)
		model[at + i] = buffer[i] = (unsigned char)below(256);
	if (length)
		grow(at + length);
	return pwritev(fd, pieces, 3, at) == length;
}

static int do_read(int fd, long at, long length)
{
	long want = at >= size ? 0 : length < size - at ? length : size - at;

	memset(buffer, 0xaa, (size_t)length);
	return pread(fd, buffer, (size_t)length, at) == want && !memcmp(buffer, model + at, (size_t)want) &&
	    (want == length || buffer[want] == 0xaa);
}

static int do_truncate(int fd, long to)
{
	if (to < size)
		memset(model + to, 0, (size_t)(size - to));
	size = to;
	return below(2) ? ftruncate(fd, to) == 0 : truncate("f", to) == 0;
}

static int do_append(long length)
{
	int fd = open("f", O_WRONLY | O_APPEND), right;

	if (size + length > LIMIT)
		length = LIMIT - size;
	for (long i = 0; i < length; i++)
		model[size + i] = buffer[i] = (unsigned char)below(256);
	right = fd >= 0 && write(fd, buffer, (size_t)length) == length;
	size += length;
	close(fd);
	return right;
}

static int do_punch(int fd, long at, long length)
{
	if (!length || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length))
		return !length || errno == EOPNOTSUPP;
	if (at < size)
		memset(model + at, 0, (size_t)(length < size - at ? length : size - at));
	return 1;
}

static int step(int fd)
{
	long at = below(LIMIT), length = below(4) ? below(5000) : below(LIMIT);
	struct stat st;

	if (length > LIMIT - at)
		length = LIMIT - at;
	switch (below(10)) {
	case 0:
	case 1:
		return do_write(fd, at, length);
	case 2:
		return do_writev(fd, at, length);
	case 3:
		return do_truncate(fd, at);
	case 4:
		return do_append(below(5000));
	case 5:
		return do_punch(fd, at, length);
	case 6:
		return fstat(fd, &st) == 0 && st.st_size == size && lseek(fd, 0, SEEK_END) == size;
	default:
		return do_read(fd, at, length);
	}
}

int main(void)
{
	int fd = check_file("f", "");

	for (int i = 0; i < 3000; i++)
		if (!step(fd)) {
			printf("operation %d, size %ld\n", i, size);
			NEED(!"the file is what the model says");
		}
	CHECK(do_read(fd, 0, LIMIT));
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
