#include <obstack.h>
#include <stdio.h>
#include <stdlib.h>

int obstack_exit_failure = EXIT_FAILURE;

static void exhausted(void)
{
	fputs("memory exhausted\n", stderr);
	exit(obstack_exit_failure);
}

void (*obstack_alloc_failed_handler)(void) = exhausted;

static char *aligned(struct obstack *h, char *p)
{
	return (char *)(((uintptr_t)p + h->alignment_mask) & ~(uintptr_t)h->alignment_mask);
}

static struct _obstack_chunk *get(struct obstack *h, size_t size)
{
	struct _obstack_chunk *chunk = h->use_extra_arg ? h->chunkfun.extra(h->extra_arg, size) : h->chunkfun.plain(size);
	if (!chunk) obstack_alloc_failed_handler();
	chunk->limit = (char *)chunk + size;
	return chunk;
}

static void give(struct obstack *h, struct _obstack_chunk *chunk)
{
	if (h->use_extra_arg) h->freefun.extra(h->extra_arg, chunk);
	else h->freefun.plain(chunk);
}

int _obstack_start(struct obstack *h, size_t size, size_t alignment)
{
	h->alignment_mask = (alignment ? alignment : 16) - 1;
	h->chunk_size = size ? size : 4064;
	if (h->chunk_size < sizeof *h->chunk + h->alignment_mask + 1) h->chunk_size = sizeof *h->chunk + h->alignment_mask + 1;
	h->chunk = get(h, h->chunk_size);
	h->chunk->prev = 0;
	h->chunk_limit = h->chunk->limit;
	h->object_base = h->next_free = aligned(h, h->chunk->contents);
	h->maybe_empty_object = 0;
	return 1;
}

void _obstack_newchunk(struct obstack *h, size_t more)
{
	struct _obstack_chunk *old = h->chunk;
	size_t has = h->next_free - h->object_base, spare = has/8 + h->alignment_mask + sizeof *old + 100;
	if (more > SIZE_MAX/2 - has - spare) obstack_alloc_failed_handler();
	size_t size = has + more + spare;
	if (size < h->chunk_size) size = h->chunk_size;
	struct _obstack_chunk *chunk = get(h, size);
	char *base = aligned(h, chunk->contents);
	memcpy(base, h->object_base, has);
	chunk->prev = old;
	/* The old chunk held nothing else. */
	if (!h->maybe_empty_object && h->object_base == aligned(h, old->contents)) {
		chunk->prev = old->prev;
		give(h, old);
	}
	h->chunk = chunk;
	h->chunk_limit = chunk->limit;
	h->object_base = base;
	h->next_free = base + has;
	h->maybe_empty_object = 0;
}

static int holds(struct _obstack_chunk *chunk, void *object)
{
	return (char *)object > (char *)chunk && (char *)object <= chunk->limit;
}

void _obstack_free(struct obstack *h, void *object)
{
	while (h->chunk && !(object && holds(h->chunk, object))) {
		struct _obstack_chunk *prev = h->chunk->prev;
		give(h, h->chunk);
		h->chunk = prev;
		/* An empty object may lie at the end of the chunk before. */
		h->maybe_empty_object = 1;
	}
	if (h->chunk) {
		h->object_base = h->next_free = object;
		h->chunk_limit = h->chunk->limit;
	} else if (object) {
		abort();
	}
}

int _obstack_allocated_p(struct obstack *h, void *object)
{
	struct _obstack_chunk *chunk = h->chunk;
	while (chunk && !holds(chunk, object)) chunk = chunk->prev;
	return chunk != 0;
}

size_t _obstack_memory_used(struct obstack *h)
{
	size_t n = 0;
	for (struct _obstack_chunk *chunk = h->chunk; chunk; chunk = chunk->prev) n += chunk->limit - (char *)chunk;
	return n;
}

int obstack_vprintf(struct obstack *h, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	int n = vsnprintf(0, 0, format, again);
	va_end(again);
	if (n < 0) return n;
	obstack_make_room(h, (size_t)n + 1);
	vsnprintf(h->next_free, (size_t)n + 1, format, arguments);
	h->next_free += n;
	return n;
}

int obstack_printf(struct obstack *h, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int n = obstack_vprintf(h, format, arguments);
	va_end(arguments);
	return n;
}
