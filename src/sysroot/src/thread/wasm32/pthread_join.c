#define _GNU_SOURCE
#include <sys/mman.h>
#include "pthread_impl.h"
#include "stacks.h"

#define __munmap(at, size) (__vm_wait(), __leave_stack(t))
#include "../pthread_join.c"
