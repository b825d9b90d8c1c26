/* A thread's block of thread-local storage: where it starts, and which struct pthread is inside. */
#include "pthread_impl.h"

hidden void __wasm_init_tls(void *);

static inline void set_tls_base(void *base)
{
	__asm__ volatile (
		".globaltype __tls_base, i32\n"
		"local.get %0\n"
		"global.set __tls_base"
		: : "r"(base) : "memory");
}

/* The block inside memory of libc.tls_size bytes. */
static inline unsigned char *tls_block_in(unsigned char *mem)
{
	return mem + (-(uintptr_t)mem & (libc.tls_align - 1));
}

static inline uintptr_t tls_self_offset(void)
{
	return __get_tp() - (uintptr_t)__builtin_wasm_tls_base();
}

static inline pthread_t tls_block_thread(unsigned char *block)
{
	return (pthread_t)(block + tls_self_offset());
}

static inline unsigned char *tls_thread_block(pthread_t thread)
{
	return (unsigned char *)thread - tls_self_offset();
}
