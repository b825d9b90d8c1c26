/* Musl declares it without parameters; a wasm call must state them. */
#include "syscall.h"

hidden long __cancel(void);
