/* Cancellation without program counters. Elsewhere the signal handler looks whether it interrupted
 * the window between the check and the system call; here the call itself answers EINTR, because the
 * signal is pending or arrives and its handler does not restart calls. That leaves no window as
 * long as the kernel delivers what is pending at entry.
 *
 * A signal that ends a wait must not meet any other one: a call that is not a cancellation point,
 * or one of a thread that has cancellation disabled by now. So a thread says when it may be sent,
 * in the word `cancel`, and whoever withdraws that permission takes the signal that was sent
 * meanwhile before it goes on. */
#include <string.h>
#include "pthread_impl.h"
#include "syscall.h"
#include "cancel.h"

hidden const int __lind_cancels = 1;

/* Withdraws the permission to send the signal, and takes the signal if it was sent. */
static void shut(pthread_t self)
{
	if (!(a_fetch_and(&self->cancel, ~CANCEL_OPEN) & CANCEL_ASKED)) return;
	while (self->cancel & CANCEL_SENDING) __syscall(SYS_sched_yield);
	/* Handlers run when a call returns. */
	__syscall(SYS_sched_yield);
}

long __cancel(void)
{
	pthread_t self = __pthread_self();
	int state = self->canceldisable;
	self->canceldisable = PTHREAD_CANCEL_DISABLE;
	if (state == PTHREAD_CANCEL_ENABLE) {
		self->cancelasync = 0;
		/* The sender of the signal still uses this structure. */
		shut(self);
		pthread_exit(PTHREAD_CANCELED);
	}
	return -ECANCELED;
}

static int cancelled(pthread_t self)
{
	return self->cancel & CANCEL_ASKED && self->canceldisable != PTHREAD_CANCEL_DISABLE;
}

static int asynchronous(pthread_t t)
{
	return t->cancelasync && t->canceldisable == PTHREAD_CANCEL_ENABLE;
}

long (__syscall_cp)(syscall_arg_t nr, syscall_arg_t u, syscall_arg_t v, syscall_arg_t w,
	syscall_arg_t x, syscall_arg_t y, syscall_arg_t z)
{
	pthread_t self = __pthread_self();
	int state = self->canceldisable, before;
	long r;

	if (state && (state == PTHREAD_CANCEL_DISABLE || nr == SYS_close))
		return __syscall(nr, u, v, w, x, y, z);

	before = a_fetch_or(&self->cancel, CANCEL_OPEN);
	r = before & CANCEL_ASKED ? -ECANCELED : __syscall(nr, u, v, w, x, y, z);
	/* A handler's call leaves the word in the state that the interrupted call needs. */
	if (!(before & CANCEL_OPEN)) shut(self);
	if (before & CANCEL_ASKED) return __cancel();
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
	if (self->cancel & CANCEL_ASKED && !self->canceldisable) __cancel();
}

/* The thread has changed its state or type. */
hidden void __lind_cancel_type(void)
{
	pthread_t self = __pthread_self();
	if (!asynchronous(self)) shut(self);
	else if (a_fetch_or(&self->cancel, CANCEL_OPEN) & CANCEL_ASKED) __cancel();
}

static void install(void)
{
	static int installed;
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_LIND_INTERRUPT, .sa_sigaction = on_cancel };
	if (installed) return;
	memset(&sa.sa_mask, -1, _NSIG/8);
	__libc_sigaction(SIGCANCEL, &sa, 0);
	installed = 1;
}

int pthread_cancel(pthread_t t)
{
	sigset_t set;
	int before, sent, r = 0;

	install();
	if (t == pthread_self()) {
		a_or(&t->cancel, CANCEL_ASKED);
		if (asynchronous(t)) __cancel();
		return 0;
	}
	/* The other thread may wait for the end of this. */
	__block_all_sigs(&set);
	do {
		before = t->cancel;
		sent = (before & (CANCEL_OPEN | CANCEL_SENDING)) == CANCEL_OPEN;
	} while (a_cas(&t->cancel, before, before | CANCEL_ASKED | (sent ? CANCEL_SENDING : 0)) != before);
	if (sent) {
		r = pthread_kill(t, SIGCANCEL);
		a_and(&t->cancel, ~CANCEL_SENDING);
	}
	__restore_sigs(&set);
	return r;
}
