/* The one call whose result needs 64 bits. */
#include <unistd.h>
#include "syscall.h"

off_t __lseek(int fd, off_t offset, int whence)
{
	off_t r = __lind_syscall(SYS_lseek, fd, offset, whence, 0, 0, 0);
	return r < 0 ? __syscall_ret(r) : r;
}

weak_alias(__lseek, lseek);
