/*
 * Opening below a directory where openat2 is not to be had, as behind grates that watch paths: one
 * part of the path after the other.
 *
 * Each directory on the way stays open, so that `..` goes back to the directory where the way came
 * from, whatever is renamed meanwhile. No call here follows a link: the text of a link is put
 * before the rest of the path, and a way that leaves the directory ends with EXDEV.
 */
#include "wasi.h"

enum { DEPTH = 64, LINKS = 40, E_NAMETOOLONG = 36, E_ISDIR = 21, E_LOOP = 40, E_NOENT = 2 };

struct walk {
	int32_t way[DEPTH]; /* the first is the caller's */
	uint32_t depth, links;
	char *rest; /* what is still to be walked, in a buffer of twice PATH_MAX */
};

static uint32_t length_of(const char *text)
{
	uint32_t length = 0;

	while (text[length])
		length++;
	return length;
}

static int64_t back(struct walk *w)
{
	if (w->depth == 0)
		return -E_XDEV;
	return CALL1(SYS_CLOSE, w->way[w->depth--]);
}

/* Puts the text of the link `name` before the rest. Not 0 if it is not a link, or leads nowhere. */
static int64_t splice(struct walk *w, const char *name)
{
	char *says = state()->says;
	int64_t length = CALL4(SYS_READLINKAT, w->way[w->depth], address(name), address(says), PATH_MAX);
	uint32_t rest = length_of(w->rest);

	if (length < 0)
		return length;
	if (++w->links > LINKS)
		return -E_LOOP;
	if (says[0] == '/')
		return -E_XDEV;
	if (length + 1 + rest >= PATH_MAX)
		return -E_NAMETOOLONG;
	/* The rest moves to the end of the buffer, and the link's text before it. */
	char *to = state()->walk + 2 * PATH_MAX - 1 - rest;
	__builtin_memmove(to, w->rest, rest + 1);
	*--to = '/';
	to -= length;
	__builtin_memmove(to, says, (uint32_t)length);
	/* Nothing followed: a slash would ask for a directory. */
	if (!rest)
		to[length] = 0;
	w->rest = to;
	return 0;
}

static int64_t enter(struct walk *w, const char *name)
{
	int64_t error = splice(w, name);

	if (error != -E_INVAL)
		return error;
	if (w->depth + 1 == DEPTH)
		return -E_NAMETOOLONG;
	int64_t opened =
	    CALL4(SYS_OPENAT, w->way[w->depth], address(name), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (opened < 0)
		return opened;
	w->way[++w->depth] = (int32_t)opened;
	return 0;
}

/* Takes the next part off the rest, as a string. Returns whether more follows; `*slash`: whether a
 * slash did. */
static int next(struct walk *w, char **name, int *slash)
{
	while (*w->rest == '/')
		w->rest++;
	*name = w->rest;
	while (*w->rest && *w->rest != '/')
		w->rest++;
	*slash = *w->rest == '/';
	while (*w->rest == '/')
		*w->rest++ = 0;
	return *w->rest != 0;
}

static int is_dots(const char *name, int count)
{
	for (int i = 0; i < count; i++)
		if (name[i] != '.')
			return 0;
	return !name[count];
}

static int64_t open_last(struct walk *w, const char *name, uint64_t flags, uint64_t mode)
{
	return CALL4(SYS_OPENAT, w->way[w->depth], address(name), flags | O_NOFOLLOW | O_CLOEXEC, mode);
}

static int64_t walk(struct walk *w, uint64_t flags, uint64_t mode)
{
	for (;;) {
		char *name;
		int slash, more = next(w, &name, &slash);
		int64_t error = 0;

		if (is_dots(name, 2))
			error = back(w);
		else if (more && !is_dots(name, 1) && *name)
			error = enter(w, name);
		if (error)
			return error;
		if (more)
			continue;
		if (!*name || is_dots(name, 1) || is_dots(name, 2))
			return flags & O_CREAT ? -E_ISDIR : open_last(w, state()->dot, flags, mode);
		if (slash && flags & O_CREAT)
			return -E_ISDIR;
		flags |= slash ? O_DIRECTORY : 0;
		/* A link at the end is followed unless O_NOFOLLOW forbids it; a slash behind it requires it. */
		if ((flags & O_NOFOLLOW && !slash) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
			return open_last(w, name, flags, mode);
		error = splice(w, name);
		if (error == -E_INVAL || error == -E_NOENT)
			return open_last(w, name, flags, mode);
		if (error)
			return error;
	}
}

int64_t walk_below(int32_t fd, const char *path, uint64_t flags, uint64_t mode)
{
	struct walk w = { .way = { fd }, .rest = state()->walk };

	state()->dot[0] = '.';
	__builtin_memcpy(w.rest, path, length_of(path) + 1);
	int64_t opened = walk(&w, flags, mode);
	while (w.depth)
		back(&w);
	return opened;
}
