#include <malloc.h>
#include "heap.h"

size_t malloc_usable_size(void *p)
{
	return p ? capacity_of(block_of(p)) : 0;
}
