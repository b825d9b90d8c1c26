#include <setjmp.h>
#include <signal.h>
#include "syscall.h"

_Noreturn void __wasm_longjmp(void *, int);

_Noreturn void siglongjmp(sigjmp_buf buf, int ret)
{
	if (buf->__fl) __syscall(SYS_rt_sigprocmask, SIG_SETMASK, buf->__ss, 0, _NSIG/8);
	__wasm_longjmp(buf, ret);
}
