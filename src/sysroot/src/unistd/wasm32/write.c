#include "transfer.h"

ssize_t write(int fd, const void *buf, size_t size)
{
	return transferred(interruptible(SYS_write, fd, buf, size));
}
