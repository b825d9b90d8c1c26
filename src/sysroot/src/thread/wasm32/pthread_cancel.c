/* Cancellation without program counters. Elsewhere the signal handler looks whether it interrupted the
 * window between the check and the system call; here the call itself answers EINTR, because the signal is
 * pending or arrives and its handler does not restart calls. That leaves no window as long as the kernel
 * delivers what is pending at entry. */
#include <string.h>
#include "pthread_impl.h"
#include "syscall.h"
#include "cancel.h"

hidden const int __lind_cancels = 1;

long __cancel(void)
{
	pthread_t self = __pthread_self();
	if (self->canceldisable == PTHREAD_CANCEL_ENABLE || self->cancelasync)
		pthread_exit(PTHREAD_CANCELED);
	self->canceldisable = PTHREAD_CANCEL_DISABLE;
	return -ECANCELED;
}

static int cancelled(pthread_t self)
{
	return self->cancel && self->canceldisable != PTHREAD_CANCEL_DISABLE;
}

long (__syscall_cp)(syscall_arg_t nr, syscall_arg_t u, syscall_arg_t v, syscall_arg_t w,
	syscall_arg_t x, syscall_arg_t y, syscall_arg_t z)
{
	pthread_t self = __pthread_self();
	int state = self->canceldisable;
	long r;

	if (state && (state == PTHREAD_CANCEL_DISABLE || nr == SYS_close))
		return __syscall(nr, u, v, w, x, y, z);

	if (self->cancel) return __cancel();
	r = __syscall(nr, u, v, w, x, y, z);
	if (r == -EINTR && nr != SYS_close && cancelled(self)) return __cancel();
	return r;
}

/* An asynchronous cancel leaves from the handler; a deferred one has made the call above return. */
static void on_cancel(int sig, siginfo_t *si, void *context)
{
	pthread_t self = __pthread_self();
	(void)sig, (void)si, (void)context;
	a_barrier();
	if (cancelled(self) && self->cancelasync) __cancel();
}

void __testcancel(void)
{
	pthread_t self = __pthread_self();
	if (self->cancel && !self->canceldisable) __cancel();
}

int pthread_cancel(pthread_t t)
{
	static int installed;
	if (!installed) {
		struct sigaction sa = { .sa_flags = SA_SIGINFO, .sa_sigaction = on_cancel };
		memset(&sa.sa_mask, -1, _NSIG/8);
		__libc_sigaction(SIGCANCEL, &sa, 0);
		installed = 1;
	}
	a_store(&t->cancel, 1);
	if (t == pthread_self()) {
		if (t->canceldisable == PTHREAD_CANCEL_ENABLE && t->cancelasync)
			pthread_exit(PTHREAD_CANCELED);
		return 0;
	}
	return pthread_kill(t, SIGCANCEL);
}
