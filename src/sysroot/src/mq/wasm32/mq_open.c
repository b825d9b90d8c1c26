#include <fcntl.h>
#include <mqueue.h>
#include <stdarg.h>
#include "mq_attr.h"
#include "syscall.h"

mqd_t mq_open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	struct mq_attr *attr = 0;
	struct kernel_mq_attr set;
	if (flags & O_CREAT) {
		va_list ap;
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		attr = va_arg(ap, struct mq_attr *);
		va_end(ap);
		if (attr) set = mq_attr_to_kernel(attr);
	}
	return syscall(SYS_mq_open, name + (*name == '/'), flags, mode, attr ? &set : 0);
}
