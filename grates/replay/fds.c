/* The descriptors of a client: which of them are the standard ones of the start, and for people,
 * what the others are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "replay.h"

#define KNOWN 1024u

struct fds {
	int8_t standard[KNOWN];  /* 0 to 2, or -1 */
	bool closes[KNOWN];  /* by execve */
	char *names[KNOWN];
};

struct fds *fds_new(void)
{
	struct fds *fds = calloc(1, sizeof *fds);

	if (!fds)
		lind_die("out of memory");
	memset(fds->standard, -1, sizeof fds->standard);
	for (int fd = 0; fd < 3; fd++)
		fds->standard[fd] = (int8_t)fd;
	return fds;
}

struct fds *fds_copy(const struct fds *fds)
{
	struct fds *copy = malloc(sizeof *copy);

	if (!copy)
		lind_die("out of memory");
	*copy = *fds;
	for (unsigned fd = 0; fd < KNOWN; fd++)
		copy->names[fd] = fds->names[fd] ? strdup(fds->names[fd]) : NULL;
	return copy;
}

static void forget(struct fds *fds, uint64_t fd)
{
	if (fd >= KNOWN)
		return;
	fds->standard[fd] = -1;
	fds->closes[fd] = false;
	free(fds->names[fd]);
	fds->names[fd] = NULL;
}

void fds_free(struct fds *fds)
{
	for (unsigned fd = 0; fd < KNOWN; fd++)
		free(fds->names[fd]);
	free(fds);
}

void fds_exec(struct fds *fds)
{
	for (unsigned fd = 0; fd < KNOWN; fd++)
		if (fds->closes[fd])
			forget(fds, fd);
}

int fds_standard(const struct fds *fds, uint64_t fd)
{
	return (uint32_t)fd < KNOWN ? fds->standard[(uint32_t)fd] : -1;
}

static void same(struct fds *fds, uint64_t from, int64_t to, bool closes)
{
	from = (uint32_t)from;
	if (to < 0 || to >= KNOWN || from == (uint64_t)to)
		return;
	forget(fds, (uint64_t)to);
	if (from >= KNOWN)
		return;
	fds->standard[to] = fds->standard[from];
	fds->closes[to] = closes;
	fds->names[to] = fds->names[from] ? strdup(fds->names[from]) : NULL;
}

/* The descriptor that a path of /dev or /proc names, or -1. */
static int by_path(const char *path)
{
	static const char *const streams[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };

	for (int fd = 0; fd < 3; fd++)
		if (!strcmp(path, streams[fd]))
			return fd;
	for (int i = 0; i < 2; i++)
		if (!strncmp(path, folders[i], strlen(folders[i])) && path[strlen(folders[i])])
			return atoi(path + strlen(folders[i]));
	return -1;
}

static void opened(struct fds *fds, const struct lind_call *c, int64_t fd, int path, int flags)
{
	char name[256];
	int of;

	if (fd >= KNOWN)
		return;
	forget(fds, (uint64_t)fd);
	fds->closes[fd] = c->args[flags].value & O_CLOEXEC;
	if (lind_read_string(c->args[path], name, sizeof name) < 0)
		return;
	if ((of = by_path(name)) >= 0)
		same(fds, (uint64_t)of, fd, fds->closes[fd]);
	else
		fds->names[fd] = strdup(name);
}

static void changed(struct fds *fds, const struct lind_call *c, int64_t result)
{
	uint64_t fd = (uint32_t)c->args[0].value;

	switch (c->args[1].value) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		same(fds, fd, result, c->args[1].value == F_DUPFD_CLOEXEC);
		break;
	case F_SETFD:
		if (fd < KNOWN)
			fds->closes[fd] = c->args[2].value & FD_CLOEXEC;
	}
}

static void closed(struct fds *fds, const struct lind_call *c)
{
	uint64_t last = (uint32_t)c->args[1].value;

	for (uint64_t fd = (uint32_t)c->args[0].value; fd <= last && fd < KNOWN; fd++) {
		if (c->args[2].value & 4 /* CLOSE_RANGE_CLOEXEC */)
			fds->closes[fd] = true;
		else
			forget(fds, fd);
	}
}

/* A pair of new descriptors, which the call has written. */
static void paired(struct fds *fds, struct lind_arg at, const char *name)
{
	int32_t pair[2];

	if (lind_read(at, pair, sizeof pair))
		return;
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0 && pair[i] < (int)KNOWN) {
			forget(fds, (uint64_t)pair[i]);
			fds->names[pair[i]] = strdup(name);
		}
}

void fds_after(struct fds *fds, const struct lind_call *c, int64_t result)
{
	const struct lind_syscall *row;

	/* Closed whatever comes of it. */
	if (c->nr == SYS_close && result != -EBADF)
		forget(fds, (uint32_t)c->args[0].value);
	if (result < 0)
		return;
	switch (c->nr) {
	case SYS_open:
		opened(fds, c, result, 0, 1);
		break;
	case SYS_openat:
		opened(fds, c, result, 1, 2);
		break;
	case SYS_dup:
	case SYS_dup2:
	case SYS_dup3:
		same(fds, c->args[0].value, result, c->nr == SYS_dup3 && c->args[2].value & O_CLOEXEC);
		break;
	case SYS_fcntl:
		changed(fds, c, result);
		break;
	case SYS_close_range:
		closed(fds, c);
		break;
	case SYS_pipe:
	case SYS_pipe2:
		paired(fds, c->args[0], "pipe");
		break;
	case SYS_socketpair:
		paired(fds, c->args[3], "socket pair");
		break;
	case SYS_close:
		break;
	default:
		row = row_of(c->nr);
		if (row && row->ret == LIND_FD && result < KNOWN) {
			forget(fds, (uint64_t)result);
			fds->names[result] = strdup(row->name);
		}
	}
}

void fds_show(const struct fds *fds)
{
	static const char *const streams[] = { "standard input", "standard output", "standard error" };

	for (unsigned fd = 0; fd < KNOWN; fd++)
		if (fds->standard[fd] >= 0 || fds->names[fd])
			lind_log("  descriptor %u: %s", fd,
			    fds->standard[fd] >= 0 ? streams[(int)fds->standard[fd]] : fds->names[fd]);
}
