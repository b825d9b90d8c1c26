/* The names of system calls and errors, from the tables that are generated from src/abi. */
#include <lind/options.h>
#include <lind/syscall_table.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int by_number(const void *key, const void *row)
{
	uint32_t nr = *(const uint32_t *)key, other = ((const struct lind_syscall *)row)->nr;

	return nr < other ? -1 : nr > other;
}

const struct lind_syscall *lind_syscall(uint32_t nr)
{
	return bsearch(&nr, lind_syscalls, COUNT(lind_syscalls), sizeof *lind_syscalls, by_number);
}

const struct lind_syscall *lind_syscall_at(size_t i)
{
	return i < COUNT(lind_syscalls) ? &lind_syscalls[i] : NULL;
}

const char *lind_call_name(uint32_t nr)
{
	const struct lind_syscall *row = lind_syscall(nr);

	return row ? row->name : "?";
}

const char *lind_errno_name(int error)
{
	for (size_t i = 0; i < COUNT(lind_errnos); i++)
		if (lind_errnos[i].number == error)
			return lind_errnos[i].name;
	return "?";
}

int lind_errno_named(const char *name)
{
	for (size_t i = 0; i < COUNT(lind_errnos); i++)
		if (!strcmp(lind_errnos[i].name, name))
			return lind_errnos[i].number;
	return 0;
}
