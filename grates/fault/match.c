/* Whether a rule is about a call: by path, kind of descriptor, program. */
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "fault.h"

/* The name of an open file, or of the directory that a path starts at. 0 or a negative errno. */
static int64_t path_of_fd(const struct lind_call *call, int fd, char *to, size_t size)
{
	char link[40];
	int64_t n;

	if (fd == AT_FDCWD)
		n = lind_forward_getcwd(call, lind_mine(to), size) - 1;
	else {
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		n = lind_forward_readlink(call, link, lind_mine(to), size - 1);
	}
	if (n < 0)
		return n;
	to[n] = 0;
	return 0;
}

/* Without `.`, `..` and doubled slashes. A rule names files by where a program looks for them;
 * links are not followed. */
static void tidy(char *path)
{
	char *to = path, *from = path;

	while (*from) {
		size_t n;

		while (*from == '/')
			from++;
		n = strcspn(from, "/");
		if (n == 2 && !strncmp(from, "..", 2)) {
			while (to > path && *--to != '/')
				;
		} else if (n && !(n == 1 && *from == '.')) {
			*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	if (to == path)
		*to++ = '/';
	*to = 0;
}

/* The whole path that a call names. */
static bool whole_path(const struct lind_call *call, const struct shape *s, char *to, size_t size)
{
	char text[PATH_MAX];
	size_t n = 0;

	if (lind_read_string(call->args[s->path], text, sizeof text) < 0)
		return false;
	if (*text != '/') {
		if (path_of_fd(call, s->dir < 0 ? AT_FDCWD : (int)call->args[s->dir].value, to, size) < 0)
			return false;
		n = strlen(to);
	}
	if (snprintf(to + n, size - n, "/%s", text) >= (int)(size - n))
		return false;
	tidy(to);
	return true;
}

static enum kind kind_of(const struct lind_call *call, struct lind_arg fd)
{
	struct lind_arg none = { 0, call->target };
	struct stat st = { 0 };
	int domain = 0;
	uint32_t size = sizeof domain;

	if (lind_call(SYS_fstat, call->target, fd, lind_mine(&st), none, none, none, none) < 0)
		return OTHER_KIND;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return FILE_KIND;
	case S_IFDIR:
		return DIR_KIND;
	case S_IFIFO:
		return PIPE_KIND;
	case S_IFCHR:
	case S_IFBLK:
		return DEVICE_KIND;
	case S_IFSOCK:
		break;
	default:
		return OTHER_KIND;
	}
	lind_call(SYS_getsockopt, call->target, fd, (struct lind_arg){ SOL_SOCKET, call->target },
	    (struct lind_arg){ SO_DOMAIN, call->target }, lind_mine(&domain), lind_mine(&size), none);
	return domain == AF_UNIX ? UNIX_KIND : INET_KIND;
}

bool rule_matches(
    const struct rule *r, const struct client *c, const struct lind_call *call, char *subject, size_t size)
{
	struct shape s = shape_of(call->nr);
	char path[2 * PATH_MAX];

	*subject = 0;
	if (r->program && fnmatch(r->program, c->name, 0))
		return false;
	if (r->kind && (s.fd < 0 || kind_of(call, call->args[s.fd]) != r->kind))
		return false;
	if (s.fd >= 0)
		snprintf(subject, size, "%d", (int)call->args[s.fd].value);
	if (r->path) {
		if (s.path >= 0 ? !whole_path(call, &s, path, sizeof path)
				: s.fd < 0 || path_of_fd(call, (int)call->args[s.fd].value, path, sizeof path) < 0)
			return false;
		if (fnmatch(r->path, path, 0))
			return false;
		for (char *p = path; *p; p++)
			if (*p < ' ' || *p > '~')
				*p = '?';
		snprintf(subject, size, "%s", path);
	}
	return true;
}
