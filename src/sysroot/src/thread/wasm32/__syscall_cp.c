/* A cancellation point. pthread_cancel.c, if linked, replaces it: programs that cancel nothing take
 * one call less on their way to every read and write. */
#include "pthread_impl.h"
#include "syscall.h"

static long uncancelled(syscall_arg_t nr, syscall_arg_t u, syscall_arg_t v, syscall_arg_t w,
	syscall_arg_t x, syscall_arg_t y, syscall_arg_t z)
{
	return __syscall(nr, u, v, w, x, y, z);
}

#undef __syscall_cp
weak_alias(uncancelled, __syscall_cp);

hidden __attribute__((__weak__)) const int __lind_cancels = 0;
