/* Thread-local storage. The linker lays out one block per thread and writes __wasm_init_tls, which
 * fills a block and makes it the instance's own; the main thread's is part of the data. */
#include <stddef.h>
#include "pthread_impl.h"
#include "libc.h"
#include "syscall.h"
#include "tls_block.h"

volatile int __thread_list_lock;

_Thread_local struct pthread __lind_self;

int __init_tp(void *p)
{
	pthread_t td = p;
	td->self = td;
	libc.can_do_threads = 1;
	td->detach_state = DT_JOINABLE;
	td->tid = __syscall(SYS_set_tid_address, &__thread_list_lock);
	td->locale = &libc.global_locale;
	td->robust_list.head = &td->robust_list.head;
	td->sysinfo = __sysinfo;
	td->next = td->prev = td;
	return 0;
}

/* Prepares a new thread's block in the calling thread, which is its own only in between: signals
 * wait, since a handler would find that block instead of its thread's. */
void *__copy_tls(unsigned char *mem)
{
	void *own = __builtin_wasm_tls_base();
	unsigned char *block = tls_block_in(mem);
	sigset_t set;

	__block_all_sigs(&set);
	__wasm_init_tls(block);
	set_tls_base(own);
	__restore_sigs(&set);
	return tls_block_thread(block);
}

static void static_init_tls(size_t *aux)
{
	(void)aux;
	libc.tls_align = __builtin_wasm_tls_align();
	if (libc.tls_align < 16) libc.tls_align = 16;
	libc.tls_size = (__builtin_wasm_tls_size() + 2*libc.tls_align - 1) & -libc.tls_align;
	__init_tp(__pthread_self());
}

weak_alias(static_init_tls, __init_tls);
