/* Mappings of files: private copies, shared ones that the file and other mappings see, ends of
 * files. */
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096
#define RW   (PROT_READ | PROT_WRITE)

static void shared(int fd)
{
	volatile char *a = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
	volatile char *b = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
	char byte = 0;

	NEED(a != MAP_FAILED && b != MAP_FAILED);
	CHECK_EQ(a[0], 'A');
	CHECK_EQ(b[0], 'B');
	a[1] = 'x';
	CHECK_EQ(pread(fd, &byte, 1, 1), 1);
	CHECK_EQ(byte, 'x');
	CHECK_EQ(pwrite(fd, "y", 1, 2), 1);
	CHECK_EQ(a[2], 'y');
	a[PAGE + 5] = 'z';
	CHECK_EQ(b[5], 'z');
	CHECK_EQ(msync((void *)a, 2 * PAGE, MS_SYNC), 0);
	CHECK_EQ(munmap((void *)a, 2 * PAGE), 0);
	CHECK_EQ(b[5], 'z');
	CHECK_EQ(munmap((void *)b, PAGE), 0);
}

static void private(int fd)
{
	volatile char *a = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0);
	char byte = 0;

	NEED(a != MAP_FAILED);
	a[0] = 'p';
	CHECK_EQ(pread(fd, &byte, 1, 0), 1);
	CHECK_EQ(byte, 'A');
	/* Our own write is ours; the rest of the mapping may or may not follow the file. */
	CHECK_EQ(pwrite(fd, "Q", 1, 0), 1);
	CHECK_EQ(a[0], 'p');
	CHECK_EQ(pwrite(fd, "A", 1, 0), 1);
	CHECK_EQ(munmap((void *)a, 2 * PAGE), 0);
}

/* The rest of a file's last page is zeros, and what is written there does not make the file
 * longer. */
static void partial_page(void)
{
	int fd = check_file("small", "0123456789");
	volatile char *a = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);

	NEED(a != MAP_FAILED);
	CHECK_EQ(a[9], '9');
	CHECK_EQ(a[10] + a[PAGE - 1], 0);
	a[10] = 'x';
	CHECK_EQ(lseek(fd, 0, SEEK_END), 10);
	close(fd);
	a[0] = 'c';
	CHECK_EQ(munmap((void *)a, PAGE), 0);
	NEED((fd = open("small", O_RDONLY)) >= 0);
	CHECK_EQ(read(fd, (char[1]){ 0 }, 1), 1);
	close(fd);
	CHECK_EQ(unlink("small"), 0);
}

static void over_anonymous(int fd)
{
	char *area = mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(area != MAP_FAILED);
	memset(area, 'm', 4 * PAGE);
	CHECK(mmap(area + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == area + PAGE);
	CHECK_EQ(area[PAGE - 1], 'm');
	CHECK_EQ(area[PAGE], 'A');
	CHECK_EQ(area[2 * PAGE], 'm');
	CHECK_EQ(munmap(area, 4 * PAGE), 0);
}

int main(void)
{
	char page[2 * PAGE];
	int fd = check_file("f", ""), reader = -1, writer = -1;

	memset(page, 'A', PAGE);
	memset(page + PAGE, 'B', PAGE);
	NEED(write(fd, page, sizeof page) == (ssize_t)sizeof page);
	shared(fd);
	private(fd);
	partial_page();
	over_anonymous(fd);

	NEED((reader = open("f", O_RDONLY)) >= 0 && (writer = open("f", O_WRONLY)) >= 0);
	CHECK_ERRNO(mmap(NULL, PAGE, RW, MAP_SHARED, reader, 0), EACCES);
	CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, writer, 0), EACCES);
	CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 100), EINVAL);
	CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 99, 0), EBADF);
	CHECK(mmap(NULL, PAGE, RW, MAP_PRIVATE, reader, 0) != MAP_FAILED);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
