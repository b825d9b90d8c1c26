#include "slots.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 64u  /* in a page: 16 MiB of a data file */
#define PAGE  (WORDS * 64u)

static uint64_t word_at(const struct slots *slots, uint64_t slot)
{
	size_t page = (size_t)(slot / PAGE);

	return page < slots->count && slots->pages[page] ? slots->pages[page][slot % PAGE / 64] : 0;
}

bool slots_has(const struct slots *slots, uint64_t slot)
{
	return slot < SLOT_MOST && word_at(slots, slot) >> slot % 64 & 1;
}

static int make_room(struct slots *slots, size_t page)
{
	size_t count = slots->count ? slots->count : 4;
	uint64_t **pages;

	while (count <= page)
		count *= 2;
	if (count == slots->count)
		return 0;
	if (!(pages = realloc(slots->pages, count * sizeof *pages)))
		return -ENOMEM;
	memset(pages + slots->count, 0, (count - slots->count) * sizeof *pages);
	slots->pages = pages;
	slots->count = count;
	return 0;
}

int slots_add(struct slots *slots, uint64_t slot)
{
	size_t page = (size_t)(slot / PAGE);
	int r;

	if (slot >= SLOT_MOST)
		return -EFBIG;
	if ((r = make_room(slots, page)))
		return r;
	if (!slots->pages[page] && !(slots->pages[page] = calloc(WORDS, sizeof **slots->pages)))
		return -ENOMEM;
	slots->pages[page][slot % PAGE / 64] |= 1ull << slot % 64;
	return 0;
}

void slots_remove(struct slots *slots, uint64_t slot)
{
	if (slots_has(slots, slot))
		slots->pages[slot / PAGE][slot % PAGE / 64] &= ~(1ull << slot % 64);
}

uint64_t slots_next(const struct slots *slots, uint64_t from, bool in)
{
	while (from < SLOT_MOST) {
		size_t page = (size_t)(from / PAGE);
		bool empty = page >= slots->count || !slots->pages[page];
		uint64_t word = empty ? 0 : word_at(slots, from);

		if (in && page >= slots->count)
			break;
		word = (in ? word : ~word) & ~0ull << from % 64;
		if (word)
			return from / 64 * 64 + (uint64_t)__builtin_ctzll(word);
		from = empty ? (page + 1) * (uint64_t)PAGE : (from / 64 + 1) * 64;
	}
	return SLOT_MOST;
}

void slots_clear(struct slots *slots)
{
	for (size_t i = 0; i < slots->count; i++)
		free(slots->pages[i]);
	free(slots->pages);
	*slots = (struct slots){ 0 };
}
