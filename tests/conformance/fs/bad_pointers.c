/* Addresses where nothing is: EFAULT, and the program goes on. */
#include "check.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

int main(void)
{
	/* volatile, or the compiler would know better than to make these calls. */
	char *volatile bad = (char *)16;
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = check_file("f", "0123456789");

	NEED(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
	CHECK_ERRNO(read(fd, bad, 4), EFAULT);
	CHECK_ERRNO(write(fd, bad, 4), EFAULT);
	CHECK_ERRNO(pread(fd, page + 4096, 4, 0), EFAULT);
	CHECK_ERRNO(open(bad, O_RDONLY), EFAULT);
	CHECK_ERRNO(syscall(SYS_stat, bad, page), EFAULT);
	CHECK_ERRNO(syscall(SYS_fstat, (long)fd, bad), EFAULT);
	CHECK_ERRNO(syscall(SYS_getcwd, bad, 4096L), EFAULT);
	CHECK_ERRNO(readv(fd, (struct iovec *)bad, 1), EFAULT);
	CHECK_ERRNO(readv(fd, &(struct iovec){ bad, 4 }, 1), EFAULT);
	CHECK_ERRNO(syscall(SYS_pipe, bad), EFAULT);
	CHECK_ERRNO(syscall(SYS_nanosleep, bad, 0L), EFAULT);
	CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)bad), EFAULT);

	/* A path that runs into the hole ends at its NUL, or not at all. */
	memset(page, 'p', 4096);
	CHECK_ERRNO(open(page + 4000, O_RDONLY), EFAULT);
	page[4095] = 0;
	CHECK_ERRNO(open(page + 4000, O_RDONLY), ENOENT);
	/* The readable part is read: the copy stops at the hole. */
	CHECK_EQ(pread(fd, page + 4086, 10, 0), 10);
	CHECK_EQ(memcmp(page + 4086, "0123456789", 10), 0);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
