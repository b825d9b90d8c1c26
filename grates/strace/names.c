/* The table of system calls, and the names of flags, values, signals and errors in it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "strace.h"

#define ROWS (sizeof lind_syscalls / sizeof *lind_syscalls)
#define TMPFILE 020200000u

const struct lind_names *const poll_events = &lind_names_PollEvents;
const struct lind_names *const epoll_events = &lind_names_EpollEvents;
const struct lind_names *const address_families = &lind_names_SocketDomain;

static int by_number(const void *key, const void *row)
{
	uint32_t nr = *(const uint32_t *)key, other = ((const struct lind_syscall *)row)->nr;

	return nr < other ? -1 : nr > other;
}

const struct lind_syscall *syscall_of(uint32_t nr)
{
	return bsearch(&nr, lind_syscalls, ROWS, sizeof *lind_syscalls, by_number);
}

const struct lind_syscall *syscall_at(size_t i)
{
	return i < ROWS ? &lind_syscalls[i] : NULL;
}

void print_flags(struct text *t, uint64_t value, const struct lind_names *names, const char *zero)
{
	const char *between = "";

	if (!value) {
		text_add(t, "%s", zero);
		return;
	}
	for (const struct lind_name *row = names->rows; row->name && value; row++)
		if (row->value && (value & row->value) == row->value) {
			text_add(t, "%s%s", between, row->name);
			value &= ~(uint64_t)row->value;
			between = "|";
		}
	if (value)
		text_add(t, "%s%#llx", between, (unsigned long long)value);
}

void print_value(struct text *t, uint64_t value, const struct lind_names *names)
{
	for (const struct lind_name *row = names->rows; row->name; row++)
		if (row->value == (uint32_t)value) {
			text_add(t, "%s", row->name);
			return;
		}
	text_add(t, value < 10 ? "%llu" : "%#llx", (unsigned long long)value);
}

void print_signal(struct text *t, int signal)
{
	if (signal > 31 && signal < 65)
		text_add(t, signal == 32 ? "SIGRTMIN" : "SIGRT_%d", signal - 32);
	else if (signal > 0 && signal < 32)
		print_value(t, (uint64_t)signal, &lind_names_Signals);
	else
		text_add(t, "%d", signal);
}

/* The access mode is a number, the rest are flags. */
void print_open_flags(struct text *t, uint32_t flags)
{
	static const char *const modes[] = { "O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE" };

	text_add(t, "%s", modes[flags & 3]);
	if (flags & ~3u) {
		text_add(t, "|");
		print_flags(t, flags & ~3u, &lind_names_OpenFlags, "");
	}
}

void print_mode(struct text *t, uint32_t mode)
{
	if (mode & S_IFMT) {
		print_value(t, mode & S_IFMT, &lind_names_FileType);
		text_add(t, "|");
	}
	text_add(t, "%#03o", mode & 07777);
}

void print_errno(struct text *t, int number)
{
	for (size_t i = 0; i < sizeof lind_errnos / sizeof *lind_errnos; i++)
		if (lind_errnos[i].number == number) {
			text_add(t, "%s (%s)", lind_errnos[i].name, lind_errnos[i].text);
			return;
		}
	text_add(t, "E? (errno %d)", number);
}
