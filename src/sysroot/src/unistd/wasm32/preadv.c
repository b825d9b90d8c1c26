/* The offset is one argument of 64 bits, and the next, meant for its upper half, is not looked
 * at. */
#define _BSD_SOURCE
#include <sys/uio.h>
#include "syscall.h"

ssize_t preadv(int fd, const struct iovec *iov, int count, off_t offset)
{
	return syscall_cp(SYS_preadv, fd, iov, count, offset, 0);
}
