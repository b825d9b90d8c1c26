/* clone(3). With shared memory it is musl's. With memory of its own the child is forked: it goes on
 * to the function, on the given stack, which is at the same address in its copy. */
#define clone clone_on_memory
static int clone_on_memory(int (*)(void *), void *, int, void *, ...);
#include "../clone.c"
#undef clone
#include <signal.h>

/* Flags that a child which is a copy may have. */
#define OF_CHILDREN (CLONE_PARENT | CLONE_NEWUTS | CLONE_NEWIPC)

/* Flags of clone(2) for the next fork. */
void wish(int flags) __asm__("__lind_clone_wish");

static __attribute__((__used__)) void child_main(int (*func)(void *), void *arg) __asm__("__lind_clone_main");
void child_on(int (*func)(void *), void *arg, void *stack) __asm__("__lind_clone_child");

static void child_main(int (*func)(void *), void *arg)
{
	int status = func(arg);
	for (;;) __syscall(SYS_exit, status);
}

__asm__ (
	".text\n"
	".globaltype __stack_pointer, i32\n"
	".globaltype __lind_vfork, i32\n"
	".type __lind_clone_wish,@function\n"
	"__lind_clone_wish:\n"
	".functype __lind_clone_wish (i32) -> ()\n"
	"local.get 0\n"
	"global.set __lind_vfork\n"
	"end_function\n"
	".functype __lind_clone_main (i32, i32) -> ()\n"
	".type __lind_clone_child,@function\n"
	"__lind_clone_child:\n"
	".functype __lind_clone_child (i32, i32, i32) -> ()\n"
	"local.get 2\n"
	"i32.const -16\n"
	"i32.and\n"
	"global.set __stack_pointer\n"
	"local.get 0\n"
	"local.get 1\n"
	"call __lind_clone_main\n"
	"end_function\n"
);

int clone(int (*func)(void *), void *stack, int flags, void *arg, ...)
{
	pid_t *ptid = 0, *ctid = 0, pid;
	void *tls = 0;
	va_list ap;

	va_start(ap, arg);
	if (flags & (CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID))
		ptid = va_arg(ap, pid_t *);
	if (flags & CLONE_CHILD_SETTID) {
		tls = va_arg(ap, void *);
		ctid = va_arg(ap, pid_t *);
	}
	va_end(ap);

	if ((flags & ~(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | OF_CHILDREN)) != SIGCHLD || !stack)
		return clone_on_memory(func, stack, flags, arg, ptid, tls, ctid);
	wish(flags & OF_CHILDREN);
	pid = _Fork();
	if (pid) {
		if (pid > 0 && flags & CLONE_PARENT_SETTID) *ptid = pid;
		return pid;
	}
	if (flags & CLONE_CHILD_SETTID) *ctid = __pthread_self()->tid;
	child_on(func, arg, stack);
	a_crash();
}
