/* fork returns twice, which the engine can only do for programs whose code was prepared for it when they
 * were linked. So it has an import of its own: a program that never forks does not import it and runs
 * unprepared. */
#include "syscall.h"

__attribute__((__import_module__("lind"), __import_name__("fork")))
int __lind_fork(void);

#undef __syscall0
#define SYS_fork (-1)
#define __syscall0(n) ((n) == SYS_fork ? __lind_fork() : (__syscall0)(n))

#include "../_Fork.c"
