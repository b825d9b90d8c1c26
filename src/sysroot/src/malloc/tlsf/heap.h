/* The allocator: two-level segregated fit. Every operation takes constant time, except for growing
 * the heap; neighbours that are free are one block, always.
 *
 * A block is a head of eight bytes and what the program gets, which is aligned to 16. The heads
 * form a chain in both directions; `prev` and `size` of neighbours must agree, and freeing checks
 * that they do. Blocks of LARGE bytes and more are mappings of their own. A few freed blocks of
 * each small size are kept aside as they are, still marked as used: most programs soon ask for the
 * same size again. */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define USED 1u
#define MAPPED 2u
#define KEPT 4u /* freed by the program, and kept as it is for the next request of its size */
#define ZERO 8u /* what the program got was zero */
#define FLAGS 15u
#define HEAD 8
#define UNIT 16
#define LARGE (4u << 20)

struct block {
	uint32_t prev; /* size of the block before, 0 if this is the first; of a mapping, what precedes the head */
	uint32_t size; /* with the head, a multiple of UNIT; of a mapping, all of it; and flags */
	struct block *next_free, *prev_free; /* only while free */
};

static inline struct block *block_of(void *p)
{
	return (struct block *)((char *)p - HEAD);
}

static inline void *memory_of(struct block *b)
{
	return (char *)b + HEAD;
}

static inline uint32_t size_of(const struct block *b)
{
	return b->size & ~FLAGS;
}

/* The bytes of it that the program may use. */
static inline size_t capacity_of(const struct block *b)
{
	return size_of(b) - HEAD - (b->size & MAPPED ? b->prev : 0);
}

hidden void *__heap_aligned(size_t, size_t);

#endif
