/* Like musl's; in addition a thread that is cancelled asynchronously sets whether it may be sent
 * the signal: see pthread_cancel.c. */
#include "pthread_impl.h"

static void nobody_cancels(void) {}
weak_alias(nobody_cancels, __lind_cancel_type);

int __pthread_setcancelstate(int new, int *old)
{
	if (new > 2U) return EINVAL;
	struct pthread *self = __pthread_self();
	if (old) *old = self->canceldisable;
	self->canceldisable = new;
	if (self->cancelasync) __lind_cancel_type();
	return 0;
}

weak_alias(__pthread_setcancelstate, pthread_setcancelstate);
