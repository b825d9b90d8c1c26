/* dladdr. A pointer to a function is its place in the table, so it means the function and nothing
 * in it; of data, each address in an object means that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include "libraries.h"

static int is_at(const struct lind_symbol *symbol, uintptr_t address)
{
	uintptr_t begin = (uintptr_t)symbol->address;
	if (!begin || symbol->size == LIND_THREAD_LOCAL)
		return 0;
	return symbol->size ? address - begin < symbol->size : address == begin;
}

static int find(struct lind_library *library, uintptr_t address, Dl_info *info)
{
	for (unsigned i = 0; i < library->count; i++) {
		const struct lind_symbol *symbol = &library->symbols[i];
		if (!is_at(symbol, address))
			continue;
		info->dli_fname = library == __lind_libraries[0] ? program_invocation_name :
			library->path ? library->path : library->name;
		info->dli_fbase = library;
		info->dli_sname = symbol->name;
		info->dli_saddr = symbol->address;
		return 1;
	}
	return 0;
}

int dladdr(const void *address, Dl_info *info)
{
	if (!__lind_libraries)
		return 0;
	for (struct lind_library *const *p = __lind_libraries; *p; p++)
		if (find(*p, (uintptr_t)address, info))
			return 1;
	return find(&__lind_libc, (uintptr_t)address, info);
}
