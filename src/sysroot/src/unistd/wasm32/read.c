#include "transfer.h"

ssize_t read(int fd, void *buf, size_t size)
{
	return transferred(interruptible(SYS_read, fd, buf, size));
}
