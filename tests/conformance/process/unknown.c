/* Numbers that no Linux has are ENOSYS. */
#include "check.h"

#include <sys/syscall.h>

int main(void)
{
	CHECK_ERRNO(syscall(100000), ENOSYS);
	CHECK_ERRNO(syscall(999, 1L, 2L, 3L, 4L, 5L, 6L), ENOSYS);
	CHECK_ERRNO(syscall(0x7fffffff, 0L), ENOSYS);
	CHECK_ERRNO(syscall(-1, 0L), ENOSYS);
	/* Once present in Linux, empty today. */
	CHECK_ERRNO(syscall(185, 0L), ENOSYS);
	return check_done();
}
