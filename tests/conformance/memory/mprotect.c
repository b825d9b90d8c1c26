/* mprotect, seen through system calls: they may not write what the program may not. */
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096

int main(void)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *shared;
	int fd = check_file("f", "0123456789"), reader;

	NEED(p != MAP_FAILED);
	memset(p, 'a', 4 * PAGE);
	CHECK_EQ(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	CHECK_ERRNO(pread(fd, p + PAGE, 4, 0), EFAULT);
	CHECK_EQ(pwrite(fd, p + PAGE, 4, 0), 4);
	CHECK_EQ(p[PAGE], 'a');
	CHECK_EQ(pread(fd, p + 2 * PAGE, 4, 0), 4);

	CHECK_EQ(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
	CHECK_ERRNO(pwrite(fd, p + PAGE, 4, 0), EFAULT);
	CHECK_EQ(mprotect(p, 4 * PAGE, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(p[PAGE], 'a');
	p[PAGE] = 'b';

	CHECK_EQ(munmap(p + 2 * PAGE, PAGE), 0);
	CHECK_ERRNO(mprotect(p, 4 * PAGE, PROT_READ), ENOMEM);
	CHECK_ERRNO(mprotect(p + 2 * PAGE, PAGE, PROT_READ), ENOMEM);
	/* musl rounds the address down itself, so ask the kernel. */
	CHECK_ERRNO(syscall(SYS_mprotect, p + 1, (long)PAGE, (long)PROT_READ), EINVAL);
	CHECK_EQ(mprotect(p + 3 * PAGE, 0, PROT_READ), 0);
	CHECK_EQ(munmap(p, 4 * PAGE), 0);

	/* A shared mapping of a file that is open for reading stays read-only. */
	NEED((reader = open("f", O_RDONLY)) >= 0);
	shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
	NEED(shared != MAP_FAILED);
	CHECK_ERRNO(mprotect(shared, PAGE, PROT_READ | PROT_WRITE), EACCES);
	CHECK_EQ(munmap(shared, PAGE), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
