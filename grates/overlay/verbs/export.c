/*
 * export: all that an overlay shows, as a tar file or into a directory. Or its changes, as the
 * upper directory of Linux's overlayfs: a removed file is a device with number 0, a new directory
 * that replaces another one is opaque, and a moved file is there with all its contents.
 */
#include "export.h"
#include <errno.h>
#include <fcntl.h>
#include <lind/options.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static const struct verb_list *list;
static struct store *state;
static struct walk to = { .root = -1, .at = -1 }; /* a directory; or none: a tar */
static struct stat to_itself;

/* Where files of several names have been put: by the number of their row, or by that of the file
 * below. */
static struct verb_map placed;
#define ROWS UINT64_MAX /* as the device */

static void check(const char *path, int r)
{
	if (r)
		lind_die("%s: %s", path, strerror(-r));
}

/* Whether put_node makes it, and it may have several names. */
static bool is_linked(mode_t mode)
{
	return S_ISREG(mode) || S_ISLNK(mode) || S_ISFIFO(mode);
}

/* The path where a file has been put. NULL: it has not been, and will be at `path`. */
static const char *put_before(uint64_t dev, uint64_t ino, const char *path)
{
	char key[48], *kept_key, *kept_path;
	size_t length =
	    (size_t)snprintf(key, sizeof key, "%llu %llu", (unsigned long long)dev, (unsigned long long)ino);
	const char *first = map_get(&placed, key, length);

	if (first)
		return first;
	if (!(kept_key = strdup(key)) || !(kept_path = strdup(path)))
		lind_die("no memory");
	map_put(&placed, kept_key, kept_path);
	return NULL;
}

static int copy_link(const char *path, const char *first)
{
	const char *name, *first_name;
	int there = walk_parent(&to, first, &first_name), at, r;

	if (there < 0 || (there = dup(there)) < 0)
		return -errno;
	at = walk_parent(&to, path, &name);
	r = at < 0 || linkat(there, first_name, at, name, 0) ? -errno : 0;
	close(there);
	return r;
}

/* Another name of what is at `first`. */
static void put_link(const char *path, const char *first, const struct store_node *node)
{
	if (to.root >= 0)
		check(path, copy_link(path, first));
	else
		tar_link(path, first, node);
}

/* Of directories what there is to them comes when all is in them. */
static int copy_node(const char *path, const struct store_node *node)
{
	const char *name;
	int at = walk_parent(&to, path, &name), fd = -1, r = 0;

	if (at < 0)
		return -errno;
	if (S_ISREG(node->mode))
		r = (fd = openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0
		    ? -errno
		    : verb_write_file(state, fd, node);
	else if (S_ISLNK(node->mode))
		r = symlinkat(node->target ? node->target : "", at, name) ? -errno : 0;
	else if (S_ISFIFO(node->mode))
		r = mknodat(at, name, S_IFIFO | 0600, 0) ? -errno : 0;
	else if (S_ISDIR(node->mode))
		return mkdirat(at, name, 0700) ? -errno : 0;
	else
		return 0;
	if (fd >= 0)
		close(fd);
	return r ? r : verb_set_attributes(at, name, node);
}

static int leave_directory(const char *path, const struct store_node *node, bool opaque)
{
	const char *name;
	int at = walk_parent(&to, path, &name),
	    fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = verb_set_xattrs(fd, node);
	if (!r && opaque && fsetxattr(fd, OPAQUE, "y", 1, 0))
		r = -errno;
	close(fd);
	return r ? r : verb_set_attributes(at, name, node);
}

static int copy_whiteout(const char *path)
{
	const char *name;
	int at = walk_parent(&to, path, &name);

	return at < 0 || mknodat(at, name, S_IFCHR, 0) ? -errno : 0;
}

static void put_node(const char *path, const struct store_node *node, bool opaque)
{
	if (to.root >= 0)
		check(path, copy_node(path, node));
	else
		tar_node(state, path, node, opaque);
}

static void put_whiteout(const char *path)
{
	if (to.root >= 0)
		check(path, copy_whiteout(path));
	else
		tar_whiteout(path);
}

/* Describes a file below that has no row, as if it had one. */
static bool node_below(const char *path, struct store_node *node, char target[static PATH_MAX], struct stat *st)
{
	ssize_t n;

	if (!below_look(path, st))
		return false;
	*node = (struct store_node){ .mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = st->st_size,
		.origin_size = st->st_size,
		.mtime = st->st_mtim,
		.atime = st->st_atim,
		.origin = path };
	if (S_ISLNK(st->st_mode)) {
		if ((n = below_link(path, target, PATH_MAX - 1)) < 0)
			return false;
		target[n] = 0;
		node->target = target;
	}
	return true;
}

/* Whether a row of this directory has the name. The rows of one directory are in order. */
static bool has_row(uint64_t dir, const char *name)
{
	size_t low = verb_first_in(list, dir), high = verb_first_in(list, dir + 1);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(list->entries[middle].name, name);

		if (!order)
			return list->entries[middle].ino != UINT64_MAX;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static void walk(const char *path, const char *below, uint64_t ino, bool shows);

static void put_below(const char *path, const char *below)
{
	static char target[PATH_MAX];
	struct store_node node;
	const char *first;
	struct stat st;

	if (!node_below(below, &node, target, &st))
		return;
	if (is_linked(node.mode) && st.st_nlink > 1 && (first = put_before(st.st_dev, st.st_ino, path))) {
		put_link(path, first, &node);
		return;
	}
	put_node(path, &node, false);
	if (!S_ISDIR(node.mode))
		return;
	walk(path, below, 0, false);
	if (to.root >= 0)
		check(path, leave_directory(path, &node, false));
}

static void walk_below(const char *path, const char *below, uint64_t ino)
{
	char **names = verb_names(below);
	struct stat st;

	/* By whatever way it is there, a bind mount for example: it would have no end. */
	if (to.root >= 0 && below_look(below, &st) && st.st_dev == to_itself.st_dev && st.st_ino == to_itself.st_ino)
		lind_die("%s: is the directory that the export writes to; choose one elsewhere", *below ? below : ".");
	for (size_t i = 0; names && names[i]; i++) {
		char *there = verb_joined(below, names[i]), *here = verb_joined(path, names[i]);

		if (!ino || !has_row(ino, names[i]))
			put_below(here, there);
		free(there);
		free(here);
		free(names[i]);
	}
	free(names);
}

/* A name with a row. `shows`: overlayfs shows what is below its directory. */
static void put_row(const struct verb_entry *entry, bool shows)
{
	struct verb_node *node = verb_node(list, entry->ino);
	char *there = shows ? verb_natural(list, entry) : NULL;
	const char *first;
	struct stat st;
	bool hides = there && below_look(there, &st),
	     merges = hides && S_ISDIR(st.st_mode) && node && node->row.origin && !strcmp(node->row.origin, there);

	free(there);
	if (!node) {
		if (hides && !entry->ino)
			put_whiteout(entry->path);
		return;
	}
	/* A damaged state may have a directory in itself. */
	if (S_ISDIR(node->row.mode) && node->entry != entry)
		return;
	if (is_linked(node->row.mode) && node->row.nlink > 1 &&
	    (first = put_before(ROWS, node->row.ino, entry->path))) {
		put_link(entry->path, first, &node->row);
		return;
	}
	put_node(entry->path, &node->row, hides && !merges && S_ISDIR(st.st_mode));
	if (!S_ISDIR(node->row.mode))
		return;
	walk(entry->path, node->row.origin, entry->ino, merges);
	if (to.root >= 0)
		check(entry->path, leave_directory(entry->path, &node->row, hides && !merges && S_ISDIR(st.st_mode)));
}

/* Visits the entries of a directory: those with rows, and those that show through. */
static void walk(const char *path, const char *below, uint64_t ino, bool shows)
{
	for (size_t i = ino ? verb_first_in(list, ino) : list->entries_count;
	    i < list->entries_count && list->entries[i].dir == ino; i++)
		if (list->entries[i].path)
			put_row(&list->entries[i], shows);
	if (below && !shows)
		walk_below(path, below, ino);
}

int verb_export(struct store *store, const struct verb_options *options)
{
	static struct verb_list all;
	int status = verb_list(store, options, &all);

	if (status)
		return status;
	if (!options->to)
		tar_begin(options->output);
	else if ((to.root = open(options->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 || fstat(to.root, &to_itself))
		lind_die("%s: %s", options->to, strerror(errno));
	list = &all;
	state = store;
	walk("", "", STORE_ROOT, options->overlayfs);
	if (!options->to)
		tar_end();
	return 0;
}
