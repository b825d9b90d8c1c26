/* clone(2) with a function: a new instance of the module, over the same memory for a thread or a
 * child that borrows its parent's. The data for the new instance is at the top of its stack, at the
 * address that is the call's stack argument; the engine calls __lind_thread_start with it. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include "pthread_impl.h"
#include "syscall.h"
#include "tls_block.h"

struct boot {
	void *tls_base;
	int (*fn)(void *);
	void *arg;
	long pad; /* keeps the stack aligned to 16 */
};

int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct boot *boot = (struct boot *)((uintptr_t)stack & -16) - 1;
	va_list ap;
	va_start(ap, arg);
	int *ptid = 0, *ctid = 0;
	void *tls = 0;
	if (ap) {
		ptid = va_arg(ap, int *);
		tls = va_arg(ap, void *);
		ctid = va_arg(ap, int *);
	}
	va_end(ap);

	boot->tls_base = flags & CLONE_SETTLS
		? tls_thread_block(tls) : __builtin_wasm_tls_base();
	boot->fn = fn;
	boot->arg = arg;
	return __syscall(SYS_clone, (unsigned)flags, boot, ptid, ctid, tls);
}

/* Everything before this call has no stack and no thread pointer: see the assembly below. */
static __attribute__((__used__)) void thread_main(struct boot *boot) __asm__("__lind_thread_main");

static void thread_main(struct boot *boot)
{
	int status = boot->fn(boot->arg);
	for (;;) __syscall(SYS_exit, status);
}

__asm__ (
	".text\n"
	".globaltype __stack_pointer, i32\n"
	".globaltype __tls_base, i32\n"
	".functype __lind_thread_main (i32) -> ()\n"
	".globl __lind_thread_start\n"
	".type __lind_thread_start,@function\n"
	".export_name __lind_thread_start, __lind_thread_start\n"
	"__lind_thread_start:\n"
	".functype __lind_thread_start (i32) -> ()\n"
	"local.get 0\n"
	"global.set __stack_pointer\n"
	"local.get 0\n"
	"i32.load 0\n"
	"global.set __tls_base\n"
	"local.get 0\n"
	"call __lind_thread_main\n"
	"end_function\n"
);
