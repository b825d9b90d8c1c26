/* calloc gives zeroes whatever was in memory before: among random allocations that are all written
 * to, over and over, by a heap that grows and shrinks. */
#include "check.h"

#include <malloc.h>

#define SLOTS 400

static unsigned char *slots[SLOTS];
static unsigned seed = 7;

static unsigned next(unsigned bound)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % bound;
}

static size_t some_size(unsigned most)
{
	unsigned kind = next(100);

	return 1 + (kind < 60 ? next(600) : kind < 90 ? next(20000) : kind < 98 ? next(300000) : next(most));
}

static void dirty(unsigned char *p)
{
	if (p)
		memset(p, 0xa5, malloc_usable_size(p));
}

static int zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return 0;
	return 1;
}

static void step(unsigned most)
{
	unsigned char **slot = &slots[next(SLOTS)];
	size_t size = some_size(most);
	void *p = NULL;

	switch (next(8)) {
	case 0:
		p = realloc(*slot, size);
		NEED(p);
		break;
	case 1:
		free(*slot);
		NEED(posix_memalign(&p, (size_t)16 << next(9), size) == 0);
		break;
	case 2:
	case 3:
		free(*slot);
		p = malloc(size);
		NEED(p);
		break;
	case 4:
		free(*slot);
		break;
	default:
		free(*slot);
		p = calloc(1, size);
		NEED(p && zero(p, size));
	}
	dirty(p);
	*slot = p;
}

int main(void)
{
	for (int round = 0; round < 6; round++) {
		/* Larger ones are mappings of their own. */
		unsigned most = round % 2 ? 6u << 20 : 3u << 20;

		for (int i = 0; i < 4000; i++)
			step(most);
		/* More than a heap keeps goes back to the system. */
		for (int i = 0; i < SLOTS; i++) {
			if (round % 3 == 2 && i % 8 == 0)
				continue;
			free(slots[i]);
			slots[i] = NULL;
		}
	}
	return check_done();
}
