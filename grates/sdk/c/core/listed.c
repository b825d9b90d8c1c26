/* The handlers that LIND_HANDLE lists, wherever in the program they are, those of parts, and those
 * that are chosen at the start. */
#include <lind/grate.h>
#include <stdlib.h>
#include <string.h>
#include "sdk.h"

/* The linker's names for the ends of the section that the lists are in; there are none without a
 * list. */
extern const struct lind_handler __start_lind_handlers[] __attribute__((weak));
extern const struct lind_handler __stop_lind_handlers[] __attribute__((weak));

static uint32_t *without;
static size_t without_count;
static lind_handle_fn *(*choose)(uint32_t nr);

void lind_grate_without(uint32_t nr)
{
	uint32_t *more = realloc(without, (without_count + 1) * sizeof *more);

	if (!more)
		lind_die("out of memory");
	without = more;
	without[without_count++] = nr;
}

void lind_grate_choose(lind_handle_fn *(*chooser)(uint32_t nr))
{
	choose = chooser;
}

/* A part of the grate, and the handlers of the call numbers without it. */
struct part {
	const struct lind_handler *list;
	lind_handle_fn *below[LIND_NUMBERS];
	struct part *next;
};

static struct part *parts;
/* The handlers with all parts; NULL in a grate without parts. */
static lind_handle_fn **numbered;

static void number(const struct lind_handler *begin, const struct lind_handler *end)
{
	for (const struct lind_handler *h = begin; h < end; h++)
		if (h->handle && h->nr < LIND_NUMBERS)
			numbered[h->nr] = h->handle;
}

void lind_add_part_(const struct lind_handler *begin, const struct lind_handler *end)
{
	struct part *part = malloc(sizeof *part);

	if (!numbered && (numbered = calloc(LIND_NUMBERS, sizeof *numbered)))
		number(__start_lind_handlers, __stop_lind_handlers);
	if (!part || !numbered)
		lind_die("out of memory");
	part->list = begin;
	memcpy(part->below, numbered, sizeof part->below);
	part->next = parts;
	parts = part;
	number(begin, end);
}

int64_t lind_below_(const struct lind_handler *list, const struct lind_call *cx)
{
	lind_handle_fn *below = NULL;

	for (const struct part *part = parts; part; part = part->next)
		if (part->list == list && cx->nr < LIND_NUMBERS)
			below = part->below[cx->nr];
	return below ? below(cx) : lind_forward(cx);
}

static bool wanted(uint32_t nr)
{
	for (size_t i = 0; i < without_count; i++)
		if (without[i] == nr)
			return false;
	return true;
}

static bool contains(const struct lind_handler *on, size_t count, uint32_t nr)
{
	for (size_t i = 0; i < count; i++)
		if (on[i].nr == nr)
			return true;
	return false;
}

/* A number whose handler is that of all calls needs no entry. */
static size_t add_chosen(struct lind_handler *on, size_t listed)
{
	lind_handle_fn *rest = choose(LIND_NR_ANY);
	size_t count = listed;

	for (uint32_t nr = 0; nr < LIND_NUMBERS; nr++) {
		lind_handle_fn *handle = contains(on, listed, nr) ? NULL : choose(nr);

		if (!contains(on, listed, nr) && handle != (lind_outside_any(nr) ? NULL : rest))
			on[count++] = (struct lind_handler){ nr, handle };
	}
	if (rest)
		on[count++] = (struct lind_handler){ LIND_NR_ANY, rest };
	return count;
}

int lind_grate_main(int argc, char **argv)
{
	size_t listed = (size_t)(__stop_lind_handlers - __start_lind_handlers), count = 0;
	struct lind_handler *on = malloc((listed + LIND_NUMBERS + 1) * sizeof *on);

	if (!on)
		lind_die("out of memory");
	for (const struct lind_handler *h = __start_lind_handlers; h < __stop_lind_handlers; h++)
		if (h->handle && wanted(h->nr) && !(numbered && h->nr < LIND_NUMBERS))
			on[count++] = *h;
	for (uint32_t nr = 0; numbered && nr < LIND_NUMBERS; nr++)
		if (numbered[nr] && wanted(nr))
			on[count++] = (struct lind_handler){ nr, numbered[nr] };
	if (choose)
		count = add_chosen(on, count);
	return lind_grate_run(on, count, argc, argv);
}
