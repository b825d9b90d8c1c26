/* malloc and its family under a random load that is checked byte by byte; alignment; impossible
 * sizes. */
#include "check.h"

#include <malloc.h>
#include <stddef.h>

#define SLOTS 500

static struct {
	unsigned char *bytes;
	size_t size;
	unsigned char fill;
} slots[SLOTS];

static unsigned seed = 99;

static unsigned next(unsigned bound)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % bound;
}

static int intact(int i)
{
	for (size_t n = 0; n < slots[i].size; n++)
		if (slots[i].bytes[n] != slots[i].fill)
			return 0;
	return 1;
}

static size_t some_size(void)
{
	unsigned kind = next(100);

	return kind < 70 ? next(200) : kind < 95 ? next(10000) : next(400000);
}

int main(void)
{
	/* volatile, or the compiler would see that these cannot be. */
	volatile size_t huge = SIZE_MAX - 100, half = SIZE_MAX / 2 + 2;
	void *p;

	for (int step = 0; step < 20000; step++) {
		int i = (int)next(SLOTS);
		size_t size = some_size();

		NEED(intact(i));
		if (next(3) == 0 && slots[i].bytes) {
			size_t kept = size < slots[i].size ? size : slots[i].size;

			NEED((slots[i].bytes = realloc(slots[i].bytes, size + 1)));
			slots[i].size = kept;
			NEED(intact(i));
		} else {
			free(slots[i].bytes);
			NEED((slots[i].bytes = malloc(size + 1)));
			NEED((uintptr_t)slots[i].bytes % _Alignof(max_align_t) == 0);
		}
		NEED(malloc_usable_size(slots[i].bytes) >= size);
		slots[i].size = size;
		slots[i].fill = (unsigned char)step;
		memset(slots[i].bytes, step, size);
	}
	for (int i = 0; i < SLOTS; i++) {
		NEED(intact(i));
		free(slots[i].bytes);
	}

	NEED((p = calloc(1000, 1000)));
	for (int i = 0; i < 1000000; i += 997)
		NEED(((char *)p)[i] == 0);
	free(p);
	CHECK_ERRNO(malloc(huge), ENOMEM);
	CHECK_ERRNO(calloc(half, 2), ENOMEM);
	CHECK_ERRNO(realloc(NULL, huge), ENOMEM);
	for (size_t align = 16; align <= 65536; align *= 4) {
		CHECK_EQ(posix_memalign(&p, align, 100), 0);
		CHECK_EQ((uintptr_t)p % align, 0);
		free(p);
		NEED((p = aligned_alloc(align, align)));
		CHECK_EQ((uintptr_t)p % align, 0);
		free(p);
	}
	CHECK_EQ(posix_memalign(&p, 3, 100), EINVAL);
	free(NULL);
	return check_done();
}
