/* The links in /proc that lead to what a process has: its open files, and where it is. The
 * kernel has others behind the numbers of ours. */
#include <limits.h>
#include "imfs_core.h"

/* The rest of `text` behind `start`, or NULL. */
static const char *behind(const char *text, const char *start)
{
	size_t length = strlen(start);

	return strncmp(text, start, length) ? NULL : text + length;
}

/* A number as /proc writes it, and nothing behind it but `end`. -1: none. */
static int64_t number(const char *text, char end)
{
	int64_t n = 0;

	if (*text == '0' && text[1] != end)
		return -1;
	for (const char *at = text; *at != end || at == text; at++) {
		if (*at < '0' || *at > '9' || n > INT_MAX / 10)
			return -1;
		n = n * 10 + (*at - '0');
	}
	return n > INT_MAX ? -1 : n;
}

/* The rest of a path behind the process's own directory in /proc, or NULL. */
static const char *own(const struct imfs_process *p, const char *path)
{
	const char *rest = behind(path, "/proc/");
	const char *self = rest ? behind(rest, "self/") : NULL;

	self = !self && rest ? behind(rest, "thread-self/") : self;
	if (self || !rest || !p->pid || !strchr(rest, '/'))
		return self;
	return number(rest, '/') == (int64_t)p->pid ? strchr(rest, '/') + 1 : NULL;
}

int64_t imfs_magic_fd(const struct imfs_process *p, const char *path, const char *folder)
{
	static const char *const standard[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };
	const char *name = own(p, path);

	for (int i = 0; i < 3 && !strcmp(folder, "fd/"); i++)
		if (!strcmp(path, standard[i]))
			return i;
	name = name ? behind(name, folder) : strcmp(folder, "fd/") ? NULL : behind(path, "/dev/fd/");
	return name ? number(name, 0) : -1;
}

bool imfs_magic_cwd(const struct imfs_process *p, const char *path)
{
	const char *name = own(p, path);

	return name && !strcmp(name, "cwd");
}

struct imfs_node *imfs_magic(const struct imfs_process *p, const char *path)
{
	struct imfs_file *f;
	int64_t fd;

	if (path[1] != 'p' && path[1] != 'd')
		return NULL;
	if (imfs_magic_cwd(p, path))
		return p->cwd;
	fd = imfs_magic_fd(p, path, "fd/");
	return fd >= 0 && (f = imfs_fd(&p->fds, (uint64_t)fd)) ? f->node : NULL;
}
