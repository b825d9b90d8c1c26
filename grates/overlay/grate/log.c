/* Which command did what: for each change the program whose call made it, as it was started, and
 * a line of the log when it comes to the state. */
#include <stdio.h>
#include <unistd.h>
#include "log.h"
#include "saved.h"

#define LONGEST 256  /* bytes of a command that are kept */
#define CLIENTS 64  /* of which it is remembered what they run */

static char **commands;  /* each once; number 0 is nobody's */
static uint32_t count = 1, room;

static struct {
	uint64_t cage;
	uint32_t command;
} known[CLIENTS];

static uint32_t number_of(const char *command)
{
	char **grown;

	for (uint32_t i = count; i-- > 1;)
		if (!strcmp(commands[i], command))
			return i;
	if (count >= room) {
		if (count > UINT16_MAX || !(grown = realloc(commands, (room + 64) * sizeof *grown)))
			return 0;
		commands = grown;
		room += 64;
	}
	return (commands[count] = strdup(command)) ? count++ : 0;
}

/* The command line from /proc, with spaces between the words. */
static uint32_t ask(uint64_t cage)
{
	char path[32], command[LONGEST];
	ssize_t length;
	int fd;

	snprintf(path, sizeof path, "/proc/%llu/cmdline", (unsigned long long)cage);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return 0;
	length = read(fd, command, sizeof command - 1);
	close(fd);
	while (length > 0 && !command[length - 1])
		length--;
	if (length <= 0)
		return 0;
	for (ssize_t i = 0; i < length; i++)
		if ((unsigned char)command[i] < ' ' || command[i] == 127)
			command[i] = ' ';
	command[length] = 0;
	return number_of(command);
}

uint32_t log_who(void)
{
	const struct lind_call *call = lind_serving_;
	size_t at;

	if (!store || !call)
		return 0;
	at = call->target % CLIENTS;
	if (known[at].cage != call->target) {
		known[at].cage = call->target;
		known[at].command = ask(call->target);
	}
	return known[at].command;
}

void log_exec(uint64_t cage)
{
	if (known[cage % CLIENTS].cage == cage)
		known[cage % CLIENTS].cage = 0;
}

/* Of a name in a directory that has one itself: its path below the overlay's root. */
static bool path_of(const struct imfs_node *dir, const char *name, char path[IMFS_PATH])
{
	int length = imfs_node_path(&fs, dir, path, IMFS_PATH), prefix = (int)strlen(fs.prefix);

	if (length < prefix || (size_t)length + strlen(name) + 2 > IMFS_PATH)
		return false;
	length -= prefix;
	memmove(path, path + prefix, (size_t)length + 1);
	if (*path == '/')
		memmove(path, path + 1, (size_t)length--);
	if (length)
		path[length++] = '/';
	strcpy(path + length, name);
	return true;
}

static int line(uint32_t who, char kind, const char *path, const char *to)
{
	int r = store_log(store, imfs_now(), who && who < count ? commands[who] : NULL, kind, path, to);

	return r < 0 ? r : 0;
}

int log_made_or_changed(struct imfs_node *n, bool is_new)
{
	struct imfs_under *u = n->under;
	const struct imfs_entry *e = n->names;
	char path[IMFS_PATH];

	/* A command that goes on with a file is logged once. */
	if (!e || (!is_new && u->logged && u->logged == u->who) || !path_of(e->dir, e->name, path))
		return 0;
	u->logged = u->who;
	/* A file that takes the place of another is logged as a change of it, since the log goes by
	 * names. */
	return line(u->who, is_new && !e->lower ? 'A' : 'M', path, NULL);
}

int log_unnamed(const struct imfs_node *dir, const char *name, struct imfs_node *n, uint32_t who)
{
	const struct imfs_entry *e = n ? n->names : NULL;
	char path[IMFS_PATH], to[IMFS_PATH];

	if (!path_of(dir, name, path))
		return 0;
	/* A file with a name that the state does not know yet has moved there. */
	while (e && e->stored)
		e = e->other;
	if (!e || !path_of(e->dir, e->name, to))
		return line(who, 'D', path, NULL);
	n->under->logged = n->under->who;
	return line(who, 'R', path, to);
}
