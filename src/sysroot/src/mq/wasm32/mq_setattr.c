#include <mqueue.h>
#include "mq_attr.h"
#include "syscall.h"

int mq_setattr(mqd_t mqd, const struct mq_attr *restrict new, struct mq_attr *restrict old)
{
	struct kernel_mq_attr set, was;
	if (new) set = mq_attr_to_kernel(new);
	int r = __syscall(SYS_mq_getsetattr, mqd, new ? &set : 0, old ? &was : 0);
	if (!r && old) *old = mq_attr_from_kernel(&was);
	return __syscall_ret(r);
}
