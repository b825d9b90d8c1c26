/* As preadv. */
#define _BSD_SOURCE
#include <sys/uio.h>
#include "syscall.h"

ssize_t pwritev(int fd, const struct iovec *iov, int count, off_t offset)
{
	return syscall_cp(SYS_pwritev, fd, iov, count, offset, 0);
}
