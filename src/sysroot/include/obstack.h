/* Stacks of objects that grow: the contents of glibc's <obstack.h>, as functions. */
#ifndef _OBSTACK_H
#define _OBSTACK_H
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

struct _obstack_chunk {
	char *limit;
	struct _obstack_chunk *prev;
	char contents[];
};

struct obstack {
	size_t chunk_size;
	struct _obstack_chunk *chunk;
	char *object_base, *next_free, *chunk_limit;
	size_t alignment_mask;
	union { void *(*plain)(size_t); void *(*extra)(void *, size_t); } chunkfun;
	union { void (*plain)(void *); void (*extra)(void *, void *); } freefun;
	void *extra_arg;
	unsigned use_extra_arg : 1, maybe_empty_object : 1;
};

extern void (*obstack_alloc_failed_handler)(void);
extern int obstack_exit_failure;

int _obstack_start(struct obstack *, size_t, size_t);
void _obstack_newchunk(struct obstack *, size_t);
void _obstack_free(struct obstack *, void *);
size_t _obstack_memory_used(struct obstack *);
int _obstack_allocated_p(struct obstack *, void *);
int obstack_printf(struct obstack *, const char *, ...) __attribute__((__format__(__printf__, 2, 3)));
int obstack_vprintf(struct obstack *, const char *, va_list) __attribute__((__format__(__printf__, 2, 0)));

static inline int _obstack_begin_plain(struct obstack *h, size_t size, size_t alignment, void *(*get)(size_t), void (*give)(void *))
{
	h->chunkfun.plain = get;
	h->freefun.plain = give;
	h->use_extra_arg = 0;
	return _obstack_start(h, size, alignment);
}

static inline int _obstack_begin_extra(struct obstack *h, size_t size, size_t alignment, void *(*get)(void *, size_t),
	void (*give)(void *, void *), void *arg)
{
	h->chunkfun.extra = get;
	h->freefun.extra = give;
	h->extra_arg = arg;
	h->use_extra_arg = 1;
	return _obstack_start(h, size, alignment);
}

#define obstack_init(h) obstack_begin((h), 0)
#define obstack_begin(h, size) obstack_specify_allocation((h), (size), 0, obstack_chunk_alloc, obstack_chunk_free)
#define obstack_specify_allocation(h, size, alignment, get, give) \
	_obstack_begin_plain((h), (size), (alignment), (void *(*)(size_t))(get), (void (*)(void *))(give))
#define obstack_specify_allocation_with_arg(h, size, alignment, get, give, arg) \
	_obstack_begin_extra((h), (size), (alignment), (void *(*)(void *, size_t))(get), (void (*)(void *, void *))(give), (arg))
#define obstack_chunkfun(h, get) ((void)((h)->chunkfun.plain = (void *(*)(size_t))(get)))
#define obstack_freefun(h, give) ((void)((h)->freefun.plain = (void (*)(void *))(give)))
#define obstack_base(h) ((void *)(h)->object_base)
#define obstack_next_free(h) ((void *)(h)->next_free)
#define obstack_chunk_size(h) ((h)->chunk_size)
#define obstack_alignment_mask(h) ((h)->alignment_mask)
#define obstack_memory_used(h) _obstack_memory_used(h)
#define obstack_object_size(h) ((size_t)((h)->next_free - (h)->object_base))
#define obstack_room(h) ((size_t)((h)->chunk_limit - (h)->next_free))
#define obstack_free(h, object) _obstack_free((h), (object))
#define obstack_1grow_fast(h, byte) ((void)(*(h)->next_free++ = (byte)))
#define obstack_ptr_grow_fast(h, p) _obstack_ptr_grow_fast((h), (const void *)(p))
#define obstack_int_grow_fast(h, n) _obstack_int_grow_fast((h), (n))
#define obstack_blank_fast(h, n) ((void)((h)->next_free += (n)))
#define obstack_calculate_object_size(h) obstack_object_size(h)

static inline void _obstack_ptr_grow_fast(struct obstack *h, const void *p)
{
	memcpy(h->next_free, &p, sizeof p);
	h->next_free += sizeof p;
}

static inline void _obstack_int_grow_fast(struct obstack *h, int n)
{
	memcpy(h->next_free, &n, sizeof n);
	h->next_free += sizeof n;
}

static inline int obstack_empty_p(struct obstack *h)
{
	uintptr_t first = ((uintptr_t)h->chunk->contents + h->alignment_mask) & ~(uintptr_t)h->alignment_mask;
	return !h->chunk->prev && (uintptr_t)h->next_free == first;
}

static inline void obstack_make_room(struct obstack *h, size_t n)
{
	if (obstack_room(h) < n) _obstack_newchunk(h, n);
}

static inline void obstack_blank(struct obstack *h, ptrdiff_t n)
{
	if (n > 0) obstack_make_room(h, n);
	h->next_free += n;
}

static inline void obstack_grow(struct obstack *h, const void *data, size_t n)
{
	obstack_make_room(h, n);
	memcpy(h->next_free, data, n);
	h->next_free += n;
}

static inline void obstack_1grow(struct obstack *h, char byte)
{
	obstack_make_room(h, 1);
	*h->next_free++ = byte;
}

static inline void obstack_grow0(struct obstack *h, const void *data, size_t n)
{
	obstack_make_room(h, n + 1);
	obstack_grow(h, data, n);
	*h->next_free++ = 0;
}

static inline void _obstack_ptr_grow(struct obstack *h, const void *p) { obstack_grow(h, &p, sizeof p); }
#define obstack_ptr_grow(h, p) _obstack_ptr_grow((h), (const void *)(p))
static inline void obstack_int_grow(struct obstack *h, int n) { obstack_grow(h, &n, sizeof n); }

static inline void *obstack_finish(struct obstack *h)
{
	char *object = h->object_base;
	if (h->next_free == object) h->maybe_empty_object = 1;
	uintptr_t next = ((uintptr_t)h->next_free + h->alignment_mask) & ~(uintptr_t)h->alignment_mask;
	h->next_free = next > (uintptr_t)h->chunk_limit ? h->chunk_limit : (char *)next;
	h->object_base = h->next_free;
	return object;
}

static inline void *obstack_alloc(struct obstack *h, size_t n) { obstack_blank(h, n); return obstack_finish(h); }
static inline void *obstack_copy(struct obstack *h, const void *data, size_t n) { obstack_grow(h, data, n); return obstack_finish(h); }
static inline void *obstack_copy0(struct obstack *h, const void *data, size_t n) { obstack_grow0(h, data, n); return obstack_finish(h); }

#ifdef __cplusplus
}
#endif
#endif
