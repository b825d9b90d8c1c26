#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include "libc.h"
#include "lock.h"
#include "syscall.h"
#include "atomic.h"
#include "fork_impl.h"
#include "heap.h"

/* Free blocks of less than FINE bytes are kept in a list per size; larger ones, in 32 lists per
 * power of two. */
#define LISTS_LOG 5
#define LISTS (1 << LISTS_LOG)
#define FINE_LOG 9
#define FINE (1 << FINE_LOG)
#define ROWS (32 - FINE_LOG + 1)

/* The heap grows by at least this much, and by an eighth of its size. */
#define GROW (64u << 10)
/* If more than this is free at its end, all but a quarter is given back. */
#define TRIM (16u << 20)
/* The number of bytes of freed blocks that are kept aside, for each size up to SMALL. */
#define SMALL 512
#define KEEP (32u << 10)
#define LARGEST (SIZE_MAX/2 - 65536)

static volatile int lock[1];
static uint32_t rows;
static uint32_t row[ROWS];
static struct block *lists[ROWS][LISTS];
static struct block *kept[SMALL/UNIT + 1];
static unsigned kept_bytes[SMALL/UNIT + 1];
/* The head after the last block of the part of the heap that brk extends. */
static struct block *end;
static uintptr_t break_start;
/* The bytes from here to `end` have not been written since brk returned them: it is the end of the
 * last block, which is free. */
static char *untouched;

static inline void enter(void)
{
	if (libc.need_locks) LOCK(lock);
}

static inline void leave(void)
{
	if (lock[0]) UNLOCK(lock);
}

static inline struct block *after(struct block *b)
{
	return (struct block *)((char *)b + size_of(b));
}

static inline void place(uint32_t size, unsigned *r, unsigned *l)
{
	if (size < FINE) {
		*r = 0;
		*l = size/UNIT;
	} else {
		unsigned log = 31 - a_clz_32(size);
		*r = log - FINE_LOG + 1;
		*l = (size >> (log - LISTS_LOG)) - LISTS;
	}
}

static void insert(struct block *b)
{
	unsigned r, l;
	place(b->size, &r, &l);
	struct block *head = lists[r][l];
	b->next_free = head;
	b->prev_free = 0;
	if (head) head->prev_free = b;
	lists[r][l] = b;
	row[r] |= 1u << l;
	rows |= 1u << r;
}

static void take_out(struct block *b)
{
	if (b->next_free) b->next_free->prev_free = b->prev_free;
	if (b->prev_free) {
		b->prev_free->next_free = b->next_free;
		return;
	}
	unsigned r, l;
	place(b->size, &r, &l);
	if (lists[r][l] != b) a_crash();
	lists[r][l] = b->next_free;
	if (b->next_free) return;
	row[r] &= ~(1u << l);
	if (!row[r]) rows &= ~(1u << r);
}

/* A free block of at least this size: the first of the first list whose blocks are all large
 * enough. */
static struct block *find(uint32_t size)
{
	unsigned r, l;
	if (size >= FINE) size += (1u << (31 - a_clz_32(size) - LISTS_LOG)) - 1;
	place(size, &r, &l);
	uint32_t fits = row[r] & (~0u << l);
	if (!fits) {
		uint32_t larger = r == 31 ? 0 : rows & (~0u << (r + 1));
		if (!larger) return 0;
		r = a_ctz_32(larger);
		fits = row[r];
	}
	return lists[r][a_ctz_32(fits)];
}

/* Frees a block: joins it with its neighbours. */
static struct block *release(struct block *b, uint32_t size)
{
	struct block *next = (struct block *)((char *)b + size);
	if (!(next->size & USED)) {
		take_out(next);
		size += next->size;
	}
	if (b->prev) {
		struct block *before = (struct block *)((char *)b - b->prev);
		if (!(before->size & USED)) {
			take_out(before);
			size += before->size;
			b = before;
		}
	}
	b->size = size;
	after(b)->prev = size;
	insert(b);
	return b;
}

/* Makes a used block of this size of it, and frees the rest. */
static void *use(struct block *b, uint32_t has, uint32_t size)
{
	if (has - size < UNIT) size = has;
	b->size = size | USED;
	struct block *rest = after(b);
	rest->prev = size;
	if ((char *)rest >= untouched && rest <= end) {
		if ((char *)(b + 1) >= untouched) {
			b->size |= ZERO;
			b->next_free = b->prev_free = 0;
		}
		untouched = (char *)(rest + 1);
	}
	if (has > size) release(rest, has - size);
	return memory_of(b);
}

/* Turns new memory into a free block, or the end of the one before, followed by a head that is
 * never free. */
static struct block *add(char *start, char *limit, uint32_t prev)
{
	struct block *b = (struct block *)start;
	b->prev = prev;
	struct block *last = (struct block *)(limit - HEAD);
	last->size = USED;
	return release(b, (char *)last - start);
}

static int extend_break(size_t size)
{
	uintptr_t now = __syscall(SYS_brk, 0), from = (uintptr_t)end;
	if (!end) {
		break_start = now;
		from = ((now + UNIT - 1) & -UNIT) + HEAD;
	} else if (now != from + HEAD) {
		return -1; /* someone else moved it */
	}
	size_t least = from - now + size + HEAD;
	uintptr_t to = (now + least + (now - break_start)/8 + GROW) & -4096;
	if (to <= now || (uintptr_t)__syscall(SYS_brk, to) != to) {
		to = (now + least + 4095) & -4096;
		if (to <= now || (uintptr_t)__syscall(SYS_brk, to) != to) return -1;
	}
	uint32_t prev = end ? end->prev : 0;
	/* The bytes before it in its page may have been used by others. */
	if (!end) untouched = (char *)(now % 4096 ? (now + 4095) & -4096 : from + sizeof *end);
	end = (struct block *)(to - HEAD);
	struct block *first = (struct block *)from;
	if (add((char *)from, (char *)to, prev) != first && (char *)first >= untouched) first->prev = first->size = 0;
	return 0;
}

/* If brk cannot extend the heap: adds a part elsewhere. */
static int extend_elsewhere(size_t size)
{
	size_t map = (size + 1024*1024 + 4095) & -4096;
	char *p = (char *)__syscall(SYS_mmap, 0, map, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
	if ((uintptr_t)p > -4096UL) return -1;
	add(p + HEAD, p + map, 0);
	return 0;
}

/* Gives back the last block but for `rest` bytes of it. Returns whether it did. */
static int trim(struct block *b, size_t rest)
{
	uintptr_t to = ((uintptr_t)b + rest + 4095) & -4096;
	int done = 0;
	/* Others may have taken the memory beyond it. */
	if ((uintptr_t)__syscall(SYS_brk, 0) != (uintptr_t)end + HEAD) return 0;
	take_out(b);
	if ((uintptr_t)__syscall(SYS_brk, to) == to) {
		end = (struct block *)(to - HEAD);
		end->size = USED;
		b->size = (char *)end - (char *)b;
		end->prev = b->size;
		if (untouched > (char *)to) untouched = (char *)to;
		done = 1;
	}
	insert(b);
	return done;
}

static void *map_large(size_t n, size_t align)
{
	size_t before = align > UNIT ? align : UNIT;
	size_t map = (n + before + 4095) & -4096;
	char *p = (char *)__syscall(SYS_mmap, 0, map, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
	if ((uintptr_t)p > -4096UL) {
		errno = ENOMEM;
		return 0;
	}
	char *memory = p + before;
	memory -= (uintptr_t)memory & (align - 1);
	struct block *b = block_of(memory);
	b->prev = (char *)b - p;
	b->size = map | USED | MAPPED;
	return memory;
}

static inline uint32_t block_size(size_t n)
{
	return (n + HEAD + UNIT - 1) & -UNIT;
}

static int keep(struct block *b)
{
	uint32_t size = size_of(b), i = size/UNIT;
	if (size > SMALL || kept_bytes[i] >= KEEP) return 0;
	kept_bytes[i] += size;
	b->size |= KEPT;
	b->next_free = kept[i];
	kept[i] = b;
	return 1;
}

static struct block *take_kept(uint32_t size)
{
	uint32_t i = size/UNIT;
	if (size > SMALL || !kept[i]) return 0;
	struct block *b = kept[i];
	kept[i] = b->next_free;
	kept_bytes[i] -= size;
	b->size &= ~(KEPT | ZERO);
	return b;
}

static void release_kept(void)
{
	for (int i = 0; i <= SMALL/UNIT; i++) {
		struct block *next, *b = kept[i];
		for (; b; b = next) {
			next = b->next_free;
			release(b, size_of(b));
		}
		kept[i] = 0;
		kept_bytes[i] = 0;
	}
}

static struct block *find_or_grow(uint32_t size)
{
	struct block *b = find(size);
	if (!b && size > SMALL) {
		release_kept();
		b = find(size);
	}
	/* The search skips lists in which only some blocks are large enough: so the request is rounded
	 * up. */
	uint32_t ask = size + size/16 + UNIT;
	if (!b && (!extend_break(ask) || !extend_elsewhere(ask))) b = find(size);
	if (b) take_out(b);
	else errno = ENOMEM;
	return b;
}

void *__libc_malloc_impl(size_t n)
{
	if (n >= LARGE) {
		if (n <= LARGEST) return map_large(n, UNIT);
		errno = ENOMEM;
		return 0;
	}
	uint32_t size = block_size(n);
	void *p = 0;
	enter();
	struct block *b = take_kept(size);
	if (b) p = memory_of(b);
	else if ((b = find_or_grow(size))) p = use(b, b->size, size);
	leave();
	return p;
}

/* For an alignment of more than UNIT: frees the bytes before the aligned part, too. */
void *__heap_aligned(size_t align, size_t n)
{
	if (align > LARGEST || n > LARGEST - align) {
		errno = ENOMEM;
		return 0;
	}
	if (n + align >= LARGE) return map_large(n, align);
	uint32_t size = block_size(n);
	void *p = 0;
	enter();
	struct block *b = find_or_grow(size + align);
	if (b) {
		uint32_t has = b->size;
		uint32_t before = -(uintptr_t)memory_of(b) & (align - 1);
		if (before) {
			struct block *first = b;
			b = (struct block *)((char *)b + before);
			b->prev = before;
			b->size = (has - before) | USED;
			release(first, before);
		}
		p = use(b, has - before, size);
	}
	leave();
	return p;
}

/* A pointer that malloc did not return, was freed, or whose neighbour was overwritten. */
static void check(struct block *b)
{
	if ((uintptr_t)b % UNIT != HEAD || (b->size & (USED | KEPT)) != USED) a_crash();
	if (!(b->size & MAPPED) && after(b)->prev != size_of(b)) a_crash();
}

void __libc_free(void *p)
{
	if (!p) return;
	struct block *b = block_of(p);
	check(b);
	if (b->size & MAPPED) {
		int e = errno;
		munmap((char *)b - b->prev, size_of(b));
		errno = e;
		return;
	}
	enter();
	if (!keep(b)) {
		b = release(b, size_of(b));
		if (b->size > TRIM && after(b) == end) trim(b, b->size/4);
	}
	leave();
}

/* Whether the block now has the size, taking from a free neighbour or giving back. */
static int resize(struct block *b, uint32_t size)
{
	uint32_t has = size_of(b);
	struct block *next = after(b);
	if (size > has && !(next->size & USED) && has + next->size >= size) {
		take_out(next);
		has += next->size;
	}
	if (size > has) return 0;
	/* A slightly smaller size is not worth a change. */
	if (has != size_of(b) || has - size >= 64) use(b, has, size);
	return 1;
}

/* Makes a mapping of its own longer or shorter; returns its new address. */
static void *resize_mapping(struct block *b, size_t n)
{
	uint32_t before = b->prev;
	size_t old = size_of(b), map = (before + HEAD + n + 4095) & -4096;
	char *base = (char *)b - before;
	if (map != old) base = (char *)__syscall(SYS_mremap, base, old, map, MREMAP_MAYMOVE);
	if ((uintptr_t)base > -4096UL) return 0;
	b = (struct block *)(base + before);
	b->size = map | USED | MAPPED;
	return memory_of(b);
}

void *__libc_realloc(void *p, size_t n)
{
	if (!p) return __libc_malloc_impl(n);
	if (n > LARGEST) {
		errno = ENOMEM;
		return 0;
	}
	struct block *b = block_of(p);
	check(b);
	size_t has = capacity_of(b);
	if (b->size & MAPPED) {
		void *moved = n >= LARGE ? resize_mapping(b, n) : 0;
		if (moved) return moved;
	} else if (n < LARGE) {
		enter();
		int done = resize(b, block_size(n));
		leave();
		if (done) return p;
	}
	void *new = __libc_malloc_impl(n);
	if (!new) return 0;
	memcpy(new, p, n < has ? n : has);
	__libc_free(p);
	return new;
}

/* Whether the memory that malloc has just returned is still zero from the kernel. */
int __malloc_allzerop(void *p)
{
	return !!(block_of(p)->size & (MAPPED | ZERO));
}

void __malloc_atfork(int who)
{
	if (who < 0) LOCK(lock);
	else if (!who) UNLOCK(lock);
	else lock[0] = 0;
}

int malloc_trim(size_t pad)
{
	int done = 0;
	enter();
	release_kept();
	if (end && end->prev) {
		struct block *last = (struct block *)((char *)end - end->prev);
		size_t rest = pad + 4*UNIT;
		if (!(last->size & USED) && rest > pad && rest + 4096 < last->size) done = trim(last, rest);
	}
	leave();
	return done;
}

struct mallinfo2 mallinfo2(void)
{
	struct mallinfo2 info = { 0 };
	enter();
	if (end) {
		info.arena = (uintptr_t)end + HEAD - break_start;
		struct block *b = (struct block *)(((break_start + UNIT - 1) & -UNIT) + HEAD);
		for (; b < end && size_of(b); b = (struct block *)((char *)b + size_of(b))) {
			if (b->size & USED && !(b->size & KEPT)) {
				info.uordblks += size_of(b);
			} else {
				info.ordblks++;
				info.fordblks += size_of(b);
				info.keepcost = size_of(b);
			}
			if ((b->size & USED)) info.keepcost = 0;
		}
	}
	leave();
	return info;
}

struct mallinfo mallinfo(void)
{
	struct mallinfo2 i = mallinfo2();
	return (struct mallinfo){
		.arena = i.arena, .ordblks = i.ordblks, .uordblks = i.uordblks, .fordblks = i.fordblks, .keepcost = i.keepcost,
	};
}
