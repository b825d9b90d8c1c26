/* Threads that come to a grate from outside. A client's thread that calls a grate runs the handler
 * in an instance of its own over the grate's memory: the engine maps a stack and a block of
 * thread-local storage, sets __stack_pointer, and calls __lind_worker_init once; __lind_worker_exit
 * when that host thread ends. To the rest of libc such a worker is a detached thread. Only grates
 * link this file. */
#include <string.h>
#include "pthread_impl.h"
#include "stdio_impl.h"
#include "libc.h"
#include "syscall.h"
#include "tls_block.h"

static void dummy(void) {}
weak_alias(dummy, __pthread_tsd_run_dtors);
weak_alias(dummy, __do_orphaned_stdio_locks);

static volatile size_t no_tsd;
weak_alias(no_tsd, __pthread_tsd_size);
static void *no_tsd_main[1];
weak_alias(no_tsd_main, __pthread_tsd_main);

static FILE *volatile no_file;
weak_alias(no_file, __stdin_used);
weak_alias(no_file, __stdout_used);
weak_alias(no_file, __stderr_used);

/* __tl_lock does nothing in programs without pthread_create.c, for which other files have a weak
 * one: but here there are threads. */
__attribute__((__used__))
static __typeof__(&__pthread_create) const real_thread_list = __pthread_create;

/* Workers are linked beside the main thread, which in a grate stays until the process ends. */
static pthread_t main_thread;

static void lock_from_now_on(FILE *f)
{
	if (f && f->lock < 0) f->lock = 0;
}

/* Runs before the program's constructors. A worker may come at any time after a registration, while
 * the main thread is inside malloc, say; so this process uses its locks from the start, and the
 * extra thread counted here keeps it so. */
hidden void __lind_expect_workers(void)
{
	main_thread = __pthread_self();
	main_thread->tsd = (void **)__pthread_tsd_main;
	lock_from_now_on(__stdin_used);
	lock_from_now_on(__stdout_used);
	lock_from_now_on(__stderr_used);
	__syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, SIGPT_SET, 0, _NSIG/8);
	libc.threaded = 1;
	libc.threads_minus_1++;
	libc.need_locks = 1;
}

/* The engine's block, or a mapping of our own where the program's thread-local data needs more. */
static unsigned char *worker_memory(unsigned char *block, size_t size, size_t need)
{
	if (size >= need) return block;
	long map = __syscall(SYS_mmap, 0, need, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANON, -1, 0);
	if ((unsigned long)map > -4096UL) a_crash();
	return (unsigned char *)map;
}

__attribute__((__export_name__("__lind_worker_init")))
void __lind_worker_init(unsigned char *block, size_t size, int tid)
{
	size_t need = libc.tls_size + __pthread_tsd_size;
	unsigned char *mem = worker_memory(block, size, need);
	sigset_t set;

	memset(mem + libc.tls_size, 0, __pthread_tsd_size);
	__wasm_init_tls(tls_block_in(mem));

	pthread_t self = (pthread_t)__get_tp();
	self->self = self;
	self->tid = tid;
	self->detach_state = DT_DETACHED;
	self->tsd = (void *)(mem + libc.tls_size);
	self->locale = &libc.global_locale;
	self->robust_list.head = &self->robust_list.head;
	self->canary = main_thread->canary;
	if (mem != block) {
		self->map_base = mem;
		self->map_size = need;
	}

	__block_app_sigs(&set);
	__tl_lock();
	libc.threads_minus_1++;
	self->next = main_thread->next;
	self->prev = main_thread;
	self->next->prev = self;
	self->prev->next = self;
	__tl_unlock();
	__restore_sigs(&set);
}

__attribute__((__export_name__("__lind_worker_exit")))
void __lind_worker_exit(void)
{
	pthread_t self = (pthread_t)__get_tp();
	sigset_t set;

	self->canceldisable = 1;
	__pthread_tsd_run_dtors();
	__do_orphaned_stdio_locks();

	__block_app_sigs(&set);
	__tl_lock();
	libc.threads_minus_1--;
	self->next->prev = self->prev;
	self->prev->next = self->next;
	self->prev = self->next = self;
	__tl_unlock();
	__restore_sigs(&set);

	if (self->map_base) __syscall(SYS_munmap, self->map_base, self->map_size);
}
