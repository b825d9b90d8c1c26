/* The kernel's struct mq_attr: eight 64-bit words. */
#include <mqueue.h>

struct kernel_mq_attr {
	long long flags, maxmsg, msgsize, curmsgs, reserved[4];
};

static inline struct kernel_mq_attr mq_attr_to_kernel(const struct mq_attr *a)
{
	return (struct kernel_mq_attr){ a->mq_flags, a->mq_maxmsg, a->mq_msgsize, a->mq_curmsgs };
}

static inline struct mq_attr mq_attr_from_kernel(const struct kernel_mq_attr *k)
{
	return (struct mq_attr){
		.mq_flags = k->flags,
		.mq_maxmsg = k->maxmsg,
		.mq_msgsize = k->msgsize,
		.mq_curmsgs = k->curmsgs,
	};
}
