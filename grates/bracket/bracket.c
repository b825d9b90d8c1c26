/*
 * `%}`: what the last grate between `%{` and `%}` starts. It stays, because its handler table is
 * the way into those grates, and has the rest of the line started in a child, which the composer
 * takes past them. A composer starts this program where "%}" is named.
 *
 * It runs without a C library: what that does when it starts would be seen by the grates inside as
 * if a client did it.
 */
#include <errno.h>
#include <lind/compose.h>
#include <stdbool.h>
#include "../sdk/c/core/program.h"

static int64_t call(int32_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return lind_import_syscall(nr, a0, a1, a2, 0, 0, 0);
}

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static void say(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	call(SYS_write, 2, (uintptr_t)text, length);
}

/* Of the composer, once it is known: people have not started a `%}`. */
static char who[64] = "%}";

_Noreturn static void leave(const char *what, const char *why, int status)
{
	say(who);
	say(": ");
	say(what);
	say(why);
	say("\n");
	for (;;)
		call(SYS_exit_group, (uint64_t)status, 0, 0);
}

/* The child: what the composer makes of it is what the program runs with. */
_Noreturn static void go_on(char **line, char **environment)
{
	int64_t more = call(LIND_BRACKET, LIND_BRACKET_ENTER, (uintptr_t)who, 0), r;
	static char name[PATH_MAX];

	if (more < 0)
		leave("refused by the composer", "", 125);
	if (more && (!line[0] || !same(line[0], "%{")))
		leave(line[0] ? line[0] : "nothing", ": another %{ is expected here", 125);
	line += more;
	r = -ENOTDIR;
	for (unsigned n = 0; program_missing(line[0], r) && n < PROGRAM_NAMES; n++)
		if (program_name(line[0], n, name))
			r = call(SYS_execve, (uintptr_t)name, (uintptr_t)line, (uintptr_t)environment);
	leave(line[0], r == -ENOENT ? ": No such file or directory" : ": cannot be run", r == -ENOENT ? 127 : 126);
}

/* block: argc, argv, 0, envp, 0 */
__attribute__((export_name("_start"))) void _start(uint32_t *block);

void _start(uint32_t *block)
{
	static char going_on[] = "%}...";
	uint32_t argc = block[0];
	char **argv = (char **)(block + 1), **environment = argv + argc + 1;
	int64_t r;

	if (argc < 2)
		leave("no program after it", "", 125);
	if (same(argv[0], going_on))
		go_on(argv + 1, environment);
	if ((r = call(LIND_BRACKET, LIND_BRACKET_CLOSE, 0, 0)) < 0)
		leave(r == -ENOSYS ? "there is no %{ before it" : "refused by the composer", "", 125);
	argv[0] = going_on;
	r = call(LIND_BRACKET, LIND_BRACKET_SPAWN, (uintptr_t)argv, (uintptr_t)environment);
	if (r < 0)
		leave("cannot go on", "", 125);
	r = call(LIND_BRACKET, LIND_BRACKET_WAIT, (uint64_t)r, 0);
	for (;;)
		call(LIND_BRACKET, LIND_BRACKET_EXIT, r < 0 ? 125 : (uint64_t)r, 0);
}

/* A program that handles no calls would not have the names on its command line looked for. */
__attribute__((export_name("__lind_handle"))) int64_t lind_handle(uint32_t entry, const struct lind_call *c);

int64_t lind_handle(uint32_t entry, const struct lind_call *c)
{
	(void)entry;
	(void)c;
	return -ENOSYS;
}
