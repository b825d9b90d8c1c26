/* -e trace=...: which calls are traced. */
#include <stdlib.h>
#include <string.h>
#include "strace.h"

static bool wanted[LIND_NUMBERS];
static bool given;

static bool has_kind(const struct lind_syscall *row, enum lind_kind kind)
{
	for (int i = 0; i < row->count; i++)
		if (row->args[i].kind == kind)
			return true;
	return false;
}

static bool is_process(const struct lind_syscall *row)
{
	static const char *const names[] = {
		"clone",
		"clone3",
		"execve",
		"execveat",
		"exit",
		"exit_group",
		"fork",
		"vfork",
		"spawn",
		"wait4",
		"waitid",
		"kill",
		"tkill",
		"tgkill",
		"rt_sigqueueinfo",
		"rt_tgsigqueueinfo",
		"pidfd_send_signal",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], row->name))
			return true;
	return false;
}

static bool in_class(const struct lind_syscall *row, const char *name, size_t length)
{
	char class[16];

	if (length >= sizeof class)
		return false;
	memcpy(class, name, length);
	class[length] = 0;
	if (!strcmp(class, "file"))
		return has_kind(row, LIND_PATH);
	if (!strcmp(class, "desc"))
		return has_kind(row, LIND_FD) || has_kind(row, LIND_DIRFD) || row->ret == LIND_FD;
	if (!strcmp(class, "process"))
		return is_process(row);
	if (!strcmp(class, "network"))
		return !strcmp(row->area, "net");
	return !strcmp(row->area, class);
}

/* Marks what one name or class means; false if it means nothing. */
static bool mark(const char *name, size_t length, bool value)
{
	const struct lind_syscall *row;
	bool class = length && name[0] == '%', any = false;
	bool all = length == 3 && !strncmp(name, "all", 3);

	if (length == 4 && !strncmp(name, "none", 4))
		return true;
	for (size_t i = 0; (row = lind_syscall_at(i)); i++) {
		bool named = strlen(row->name) == length && !strncmp(row->name, name, length);

		if (all || named || (class ? in_class(row, name + 1, length - 1) : in_class(row, name, length))) {
			wanted[row->nr] = value;
			any = true;
		}
	}
	return any;
}

const char *select_calls(const char *expression)
{
	static char wrong[128];
	const char *at = expression, *equals = strchr(expression, '=');
	bool value = true;

	if (equals) {
		if ((size_t)(equals - expression) != 5 || strncmp(expression, "trace", 5))
			return "only trace= is understood";
		at = equals + 1;
	}
	if (*at == '!') {
		at++;
		value = false;
	}
	if (!given && !value)
		memset(wanted, true, sizeof wanted);
	given = true;
	for (;;) {
		size_t length = strcspn(at, ",");
		bool maybe = length && at[0] == '?';

		if (!mark(at + maybe, length - maybe, value) && !maybe) {
			strcpy(wrong, "no such system call or class: ");
			strncat(wrong, at, length < 60 ? length : 60);
			return wrong;
		}
		if (!at[length])
			return NULL;
		at += length + 1;
	}
}

bool selected(const struct lind_syscall *row)
{
	return !given || wanted[row->nr];
}

bool everything_selected(void)
{
	return !given;
}
