/* The names of flags, values, signals and errors. */
#include <string.h>
#include <sys/stat.h>
#include "strace.h"

const struct lind_names *const poll_events = &lind_names_PollEvents;
const struct lind_names *const epoll_events = &lind_names_EpollEvents;
const struct lind_names *const address_families = &lind_names_SocketDomain;
const struct lind_names *const socket_levels = &lind_names_SockLevel;
const struct lind_names *const socket_options = &lind_names_SockOption;
const struct lind_names *const message_flags = &lind_names_MsgFlags;
const struct lind_names *const statx_mask = &lind_names_StatxMask;

/* Behind a number that has no name: what its names would begin with. */
static void print_unnamed(struct text *t, uint64_t value, const struct lind_names *names)
{
	const char *first = names->rows->name;
	size_t common = first ? strlen(first) : 0, same;

	for (const struct lind_name *row = names->rows; row->name; row++) {
		for (same = 0; same < common && first[same] == row->name[same]; same++)
			;
		common = same;
	}
	while (common && first[common - 1] != '_')
		common--;
	text_add(t, "%#llx", (unsigned long long)value);
	if (common)
		text_add(t, " /* %.*s??? */", (int)common, first);
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
	if (value && *between)
		text_add(t, "|%#llx", (unsigned long long)value);
	else if (value)
		print_unnamed(t, value, names);
}

void print_value(struct text *t, uint64_t value, const struct lind_names *names)
{
	for (const struct lind_name *row = names->rows; row->name; row++)
		if (row->value == (uint32_t)value) {
			text_add(t, "%s", row->name);
			return;
		}
	print_unnamed(t, value, names);
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

/* Numbers of calls whose type in the table is a plain one. */
const struct lind_names *argument_names(uint32_t nr, int argument)
{
	static const struct lind_name which[] = { { 0, "PRIO_PROCESS" }, { 1, "PRIO_PGRP" }, { 2, "PRIO_USER" },
		{ 0, NULL } };
	static const struct lind_name policy[] = { { 0, "SCHED_OTHER" }, { 1, "SCHED_FIFO" }, { 2, "SCHED_RR" },
		{ 3, "SCHED_BATCH" }, { 5, "SCHED_IDLE" }, { 0, NULL } };
	static const struct lind_name ids[] = { { 0, "P_ALL" }, { 1, "P_PID" }, { 2, "P_PGID" }, { 3, "P_PIDFD" },
		{ 0, NULL } };
	static const struct lind_name timers[] = { { 0, "ITIMER_REAL" }, { 1, "ITIMER_VIRTUAL" }, { 2, "ITIMER_PROF" },
		{ 0, NULL } };
	static const struct {
		uint32_t nr;
		int argument;
		struct lind_names names;
	} all[] = {
		{ SYS_getpriority, 0, { "which", which } },
		{ SYS_setpriority, 0, { "which", which } },
		{ SYS_waitid, 0, { "id", ids } },
		{ SYS_sched_get_priority_max, 0, { "policy", policy } },
		{ SYS_sched_get_priority_min, 0, { "policy", policy } },
		{ SYS_sched_setscheduler, 1, { "policy", policy } },
		{ SYS_getitimer, 0, { "timer", timers } },
		{ SYS_setitimer, 0, { "timer", timers } },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].nr == nr && all[i].argument == argument)
			return &all[i].names;
	return NULL;
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
