#include "transfer.h"

ssize_t pwrite(int fd, const void *buf, size_t size, off_t offset)
{
	return transferred(interruptible(SYS_pwrite, fd, buf, size, __SYSCALL_LL_PRW(offset)));
}
