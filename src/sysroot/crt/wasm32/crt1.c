/* Where a program starts: the engine calls `_start` with a block of 32-bit words laid out as a
 * kernel lays out a new stack: argc, argv, 0, envp, 0, pairs of auxv. */
#include <features.h>

hidden int __lind_argc;
hidden char **__lind_argv, **__lind_envp;

int __lind_call_main(void);
hidden void __wasm_call_ctors(void);
/* Only defined by the part of libc for grates: see src/thread/wasm32/worker.c. */
extern weak hidden void __lind_expect_workers(void);

int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void));

/* Replaces libc's loop over .init_array, which wasm does not have. The reference to
 * __wasm_call_ctors also keeps the linker from wrapping every export in a call to it. */
hidden void __libc_start_init(void)
{
	if (__lind_expect_workers) __lind_expect_workers();
	__wasm_call_ctors();
}

static int run_main(int argc, char **argv, char **envp)
{
	__lind_argc = argc;
	__lind_argv = argv;
	__lind_envp = envp;
	return __lind_call_main();
}

void _start(long *block)
{
	__libc_start_main(run_main, block[0], (void *)(block + 1), 0, 0, 0);
}
