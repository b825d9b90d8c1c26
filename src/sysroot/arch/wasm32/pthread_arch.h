/* A thread's struct pthread is itself a thread-local variable, at a fixed distance from __tls_base:
 * one global.get and an addition find it. __tls_base belongs to the instance, and a thread has its
 * own. */
extern hidden _Thread_local struct __pthread __lind_self __attribute__((__tls_model__("local-exec")));

static inline uintptr_t __get_tp()
{
	return (uintptr_t)&__lind_self;
}
