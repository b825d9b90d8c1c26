#include <errno.h>
#include "heap.h"

void *aligned_alloc(size_t align, size_t n)
{
	if (!align || align & (align - 1)) {
		errno = EINVAL;
		return 0;
	}
	return align <= UNIT ? __libc_malloc_impl(n) : __heap_aligned(align, n);
}
