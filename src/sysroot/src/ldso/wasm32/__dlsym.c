/* dlsym, by the tables of names that the linker's driver has written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include "dynlink.h"
#include "libraries.h"

void *__lind_symbol_in(const struct lind_library *library, const char *name)
{
	unsigned from = 0, to = library->count;
	while (from < to) {
		unsigned middle = from + (to - from) / 2;
		const struct lind_symbol *symbol = &library->symbols[middle];
		int order = strcmp(name, symbol->name);
		if (!order)
			return symbol->size == LIND_THREAD_LOCAL ? ((void *(*)(void))symbol->address)() : symbol->address;
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return 0;
}

/* In a list of libraries, in those behind `after`, or in all if that is null. */
static void *in(struct lind_library *const *list, const struct lind_library *after, const char *name)
{
	void *found = 0;
	while (after && *list && *list++ != after)
		;
	for (; !found && *list; list++)
		found = __lind_symbol_in(*list, name);
	return found;
}

/* In the program, what it needs and the C library; if `after` is in that list, behind it. */
static void *at_start(const struct lind_library *after, const char *name)
{
	void *found = 0;
	for (struct lind_library *const *p = __lind_libraries; !found && *p && (*p)->at_start; p++) {
		if (!after)
			found = __lind_symbol_in(*p, name);
		else if (*p == after)
			after = 0;
	}
	return found ? found : __lind_symbol_in(&__lind_libc, name);
}

static void *everywhere(const char *name)
{
	void *found = at_start(0, name);
	for (struct lind_library *p = __lind_global; !found && p; p = p->next_global)
		found = __lind_symbol_in(p, name);
	return found;
}

static void *next(const struct lind_library *caller, const char *name)
{
	if (!caller)
		caller = __lind_libraries[0];
	if (caller->at_start)
		return at_start(caller, name);
	void *found = in(caller->scope, caller, name);
	return found ? found : __lind_symbol_in(&__lind_libc, name);
}

void *__dlsym(void *restrict handle, const char *restrict name, void *restrict caller)
{
	void *found = 0;
	if (__lind_libraries) {
		if (handle == RTLD_NEXT)
			found = next(caller, name);
		else if (handle == RTLD_DEFAULT || handle == __lind_libraries[0])
			found = everywhere(name);
		else if (handle == &__lind_libc)
			found = __lind_symbol_in(&__lind_libc, name);
		else if (!__lind_is_handle(handle))
			return 0;
		else
			found = in(((struct lind_library *)handle)->scope, 0, name);
	}
	if (!found)
		__dl_seterr("symbol not found: %s", name);
	return found;
}
