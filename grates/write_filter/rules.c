/* Sets of rules, as options give them at the start and the user later. */
#include <limits.h>
#include <lind/names.h>
#include <lind/options.h>
#include <lind/paths.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "names.h"
#include "rules.h"

static struct rules *current, *building;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct rules *rules_hold(void)
{
	struct rules *held;

	pthread_mutex_lock(&lock);
	held = current;
	held->uses++;
	pthread_mutex_unlock(&lock);
	return held;
}

static void list_free(struct list *list)
{
	while (list->count)
		free(list->of[--list->count]);
	free(list->of);
}

static void rules_free(struct rules *rules)
{
	struct list *lists[] = { &rules->allowed, &rules->protected, &rules->below, &rules->confined, &rules->inside,
		&rules->hidden, &rules->harmless };

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		list_free(lists[i]);
	while (rules->later_count)
		free(rules->later[--rules->later_count].pattern);
	free(rules->later);
	free(rules);
}

void rules_release(struct rules *held)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--held->uses;
	pthread_mutex_unlock(&lock);
	if (last)
		rules_free(held);
}

const char *rules_begin(void)
{
	building = calloc(1, sizeof *building);
	return building ? NULL : "out of memory";
}

/* The rules that are being read. */
static struct rules *those(void)
{
	if (!building && rules_begin())
		lind_die("out of memory");
	return building;
}

const char *rules_settle(bool applies)
{
	struct rules *new = those(), *old = current;
	bool reads = false;

	building = NULL;
	if (!applies) {
		rules_free(new);
		return NULL;
	}
	for (size_t i = 0; i < new->later_count; i++)
		reads |= new->later[i].what == CONCEAL;
	new->uses = 1;
	pthread_mutex_lock(&lock);
	current = new;
	pthread_mutex_unlock(&lock);
	rules_changed(reads);
	if (old)
		rules_release(old);
	return NULL;
}

static const char *add(struct list *list, const char *value)
{
	char **more;

	if (*value != '/')
		return "must begin with /";
	if (strlen(value) >= PATH_MAX)
		return "too long";
	if (!(more = realloc(list->of, (list->count + 1) * sizeof *more)))
		return "out of memory";
	list->of = more;
	if (!(more[list->count] = strdup(value)))
		return "out of memory";
	list->count++;
	return NULL;
}

const char *rules_allow(const char *value)
{
	return add(&those()->allowed, value);
}

static const char *add_clean(struct list *list, const char *value)
{
	char clean[PATH_MAX];
	const char *wrong = lind_path_clean(value, clean);

	return wrong ? wrong : add(list, clean);
}

const char *rules_protect(const char *value)
{
	return add_clean(&those()->protected, value);
}

const char *rules_protect_below(const char *value)
{
	return add_clean(&those()->below, value);
}

const char *rules_confine(const char *value)
{
	return add_clean(&those()->confined, value);
}

const char *rules_inside(const char *value)
{
	return add_clean(&those()->inside, value);
}

const char *rules_hide(const char *value)
{
	return add_clean(&those()->hidden, value);
}

/* Several patterns with a slash between: none has one. */
const char *rules_let_be(const char *value)
{
	struct list *harmless = &those()->harmless;
	const char *name, *rest;
	size_t length;

	for (; (length = first(value, &name, &rest)); value = rest) {
		char **more = realloc(harmless->of, (harmless->count + 1) * sizeof *more);

		if (!more)
			return "out of memory";
		harmless->of = more;
		if (!(more[harmless->count] = strndup(name, length)))
			return "out of memory";
		harmless->count++;
	}
	return NULL;
}

/* [once:NUMBER:]PATTERN */
static const char *add_later(int what, const char *value)
{
	struct rules *rules = those();
	struct later *more = realloc(rules->later, (rules->later_count + 1) * sizeof *more);
	struct later one = { .what = what };
	char clean[PATH_MAX], *rest;
	const char *wrong;

	if (!more)
		return "out of memory";
	rules->later = more;
	if (!strncmp(value, "once:", strlen("once:"))) {
		one.once = strtoull(value + strlen("once:"), &rest, 10);
		if (*rest != ':' || !one.once)
			return "must be once:NUMBER:PATTERN";
		value = rest + 1;
	}
	if (strlen(value) >= PATH_MAX)
		return "too long";
	if ((wrong = lind_path_clean(value, clean)))
		return wrong;
	if (!(one.pattern = strdup(clean)))
		return "out of memory";
	rules->later[rules->later_count++] = one;
	return NULL;
}

const char *rules_grant(const char *value)
{
	return add_later(GRANT, value);
}

const char *rules_refuse(const char *value)
{
	return add_later(REFUSE, value);
}

const char *rules_reveal(const char *value)
{
	return add_later(REVEAL, value);
}

const char *rules_conceal(const char *value)
{
	return add_later(CONCEAL, value);
}
