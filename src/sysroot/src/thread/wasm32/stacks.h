#include <stddef.h>

struct __pthread;

/* A mapping of size bytes for a new thread, the first guard of them inaccessible and its
 * thread-local data zero; MAP_FAILED on failure, as for mmap. */
hidden void *__take_stack(size_t size, size_t guard);
/* Gives it back. The caller may be the thread itself, if it only exits afterwards and touches no
 * memory. */
hidden void __leave_stack(struct __pthread *);
