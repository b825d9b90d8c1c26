#include "transfer.h"

ssize_t read(int fd, void *buf, size_t size)
{
	return transferred(__syscall_cp(SYS_read, fd, buf, size));
}
