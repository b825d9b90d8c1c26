/* The table of decisions: made once, then only read. */
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"

#define MAX_STEPS      65536u
#define MAX_CONDITIONS 65536u
#define MAX_VALUES     65536u

/* Steps while they are collected, in a list for each number. */
struct link {
	struct step step;
	struct link *next;
};

static struct link *lists[NUMBERS], **ends[NUMBERS];
static struct condition *conditions;
static uint64_t *values;
static size_t step_count, condition_count, value_count;

const struct step *steps_of_[NUMBERS + 1];
const struct condition *conditions_;
const uint64_t *values_;

static void *grown(void *array, size_t count, size_t more, size_t size, size_t max)
{
	if (count + more > max)
		lind_die("the policy is too large");
	if (!(array = realloc(array, (count + more) * size)))
		lind_die("out of memory");
	return array;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t add_values(uint64_t *more, size_t count)
{
	qsort(more, count, sizeof *more, by_value);
	values = grown(values, value_count, count, sizeof *values, MAX_VALUES);
	memcpy(values + value_count, more, count * sizeof *more);
	value_count += count;
	return value_count - count;
}

bool among(const struct condition *c, uint64_t v)
{
	const uint64_t *set = values_ + c->a;
	size_t low = 0, high = (size_t)c->b;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (set[middle] < v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->b && set[low] == v;
}

void add_step(
    uint32_t nr, const struct rule *rule, const struct condition *more, size_t count, const struct patterns *patterns)
{
	struct link *l = calloc(1, sizeof *l);

	if (!l || ++step_count > MAX_STEPS)
		lind_die("the policy is too large");
	conditions = grown(conditions, condition_count, count + 1, sizeof *conditions, MAX_CONDITIONS);
	if (count)
		memcpy(conditions + condition_count, more, count * sizeof *more);
	l->step = (struct step){ .rule = rule,
		.patterns = patterns,
		.first = (uint32_t)condition_count,
		.count = (uint32_t)count,
		.action = rule->action,
		.last = !count && !patterns };
	condition_count += count;
	if (!ends[nr])
		ends[nr] = &lists[nr];
	*ends[nr] = l;
	ends[nr] = &l->next;
}

void unconditional_first(void)
{
	for (uint32_t nr = 0; nr < NUMBERS; nr++)
		for (struct link *l = lists[nr]; l; l = l->next)
			if (l->step.last) {
				l->next = NULL;
				lists[nr] = l;
				break;
			}
}

void finish_steps(const struct rule *otherwise)
{
	struct step *all = calloc(step_count + NUMBERS + 1, sizeof *all), *at = all;
	struct step rest = { .rule = otherwise, .action = otherwise->action, .last = true };

	if (!all)
		lind_die("out of memory");
	for (uint32_t nr = 0; nr <= NUMBERS; nr++) {
		bool ended = false;

		steps_of_[nr] = at;
		for (struct link *l = nr < NUMBERS ? lists[nr] : NULL; l && !ended; l = l->next) {
			*at++ = l->step;
			ended = l->step.last;
		}
		if (!ended)
			*at++ = rest;
	}
	conditions_ = conditions;
	values_ = values;
}

bool always(uint32_t nr, enum action *action)
{
	*action = steps_of(nr)->action;
	return steps_of(nr)->last;
}

bool looks(uint32_t nr)
{
	for (const struct step *s = steps_of(nr);; s++) {
		if (s->patterns)
			return true;
		if (s->last)
			return false;
	}
}

bool ruled(uint32_t nr)
{
	return nr < NUMBERS && lists[nr];
}
