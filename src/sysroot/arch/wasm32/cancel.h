/* Musl declares these two without parameters; a wasm call must state them. */
#include "syscall.h"

hidden long __cancel(void);
hidden long __syscall_cp_c(syscall_arg_t, syscall_arg_t, syscall_arg_t, syscall_arg_t, syscall_arg_t,
	syscall_arg_t, syscall_arg_t);
