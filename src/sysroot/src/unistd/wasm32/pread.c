#include "transfer.h"

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	return transferred(interruptible(SYS_pread, fd, buf, size, __SYSCALL_LL_PRW(offset)));
}
