/* Like musl's; in addition a thread that is cancelled asynchronously sets whether it may be sent
 * the signal: see pthread_cancel.c. */
#include "pthread_impl.h"

static void nobody_cancels(void) {}
weak_alias(nobody_cancels, __lind_cancel_type);

int pthread_setcanceltype(int new, int *old)
{
	struct pthread *self = __pthread_self();
	if (new > 1U) return EINVAL;
	if (old) *old = self->cancelasync;
	self->cancelasync = new;
	__lind_cancel_type();
	return 0;
}
