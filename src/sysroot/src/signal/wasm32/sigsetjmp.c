/* sigsetjmp is a macro over this and setjmp, since the compiler knows setjmp by its name only. */
#include <setjmp.h>
#include <signal.h>
#include "syscall.h"

void __sigsetjmp_save(struct __jmp_buf_tag *buf, int save)
{
	buf->__fl = save;
	if (save) __syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, buf->__ss, _NSIG/8);
}
