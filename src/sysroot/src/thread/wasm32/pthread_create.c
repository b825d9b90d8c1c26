/* Its stack comes from stacks.c, ready to be used. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "pthread_impl.h"
#include "stacks.h"

#define __mmap(at, size, ...) __take_stack(size, guard)
#define __mprotect(...) 0
#include "../pthread_create.c"
