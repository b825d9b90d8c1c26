/* apply and discard: changes leave the state, with or without being made below. */
#include "verb_tree.h"
#include "verb_print.h"
#include "layers.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TEMPORARY ".lind-apply-"

static int remove_tree(int at, const char *name)
{
	struct dirent *entry;
	DIR *dir;
	int fd, r = 0;

	if (!unlinkat(at, name, 0))
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if ((fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 || !(dir = fdopendir(fd)))
		return -errno;
	while (!r && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			r = remove_tree(dirfd(dir), entry->d_name);
	closedir(dir);
	return r ? r : unlinkat(at, name, AT_REMOVEDIR) ? -errno : 0;
}

static int remove_below(const char *path)
{
	const char *name;
	int at = below_parent(path, &name), r = at < 0 ? -errno : remove_tree(at, name);

	if (at >= 0)
		close(at);
	return r == -ENOENT ? 0 : r;
}

/* Owner as far as we may give files away, then the mode, which that could clear, then the times. */
int verb_set_attributes(int at, const char *name, const struct store_node *row)
{
	const struct timespec times[2] = { row->atime, row->mtime };
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if ((st.st_uid != row->uid || st.st_gid != row->gid) && fchownat(at, name, row->uid, row->gid, AT_SYMLINK_NOFOLLOW) && errno != EPERM && errno != EINVAL)
		return -errno;
	if (!S_ISLNK(row->mode) && fchmodat(at, name, row->mode & 07777, 0))
		return -errno;
	return utimensat(at, name, times, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

static int set_xattrs(int fd, const struct store_node *row)
{
	struct verb_xattr x = { 0 };

	while (verb_next_xattr(row, &x))
		if (fsetxattr(fd, x.name, x.value, x.size, 0) && errno != EOPNOTSUPP && errno != EPERM)
			return -errno;
	return 0;
}

/* Of what is there already: also those go that the row has not. */
static int replace_xattrs(int fd, const struct store_node *row)
{
	static char names[XATTRS];
	ssize_t size = flistxattr(fd, names, sizeof names);

	for (ssize_t i = 0; i < size; i += (ssize_t)strlen(names + i) + 1)
		if (!strncmp(names + i, "user.", 5) && fremovexattr(fd, names + i))
			return -errno;
	return set_xattrs(fd, row);
}

/* Into a new file, whole. What is behind all that was written is not looked at: it may be more than there is time for. */
int verb_write_file(struct store *store, int fd, const struct store_node *row)
{
	static uint8_t bytes[STORE_CHUNK], zeros[STORE_CHUNK];
	int64_t chunks = row->size / STORE_CHUNK + 1, shown = row->origin_size / STORE_CHUNK + 1;
	int below, r = below_of_row(row, &below);

	if (!r && ftruncate(fd, row->size))
		r = -errno;
	for (int64_t chunk = 0; !r && chunk < chunks; chunk++) {
		ssize_t have;

		if ((below < 0 || chunk >= shown) && (chunk = store_next_chunk(store, row->ino, (uint64_t)chunk)) >= chunks)
			break;
		have = chunk < 0 ? (ssize_t)chunk : verb_chunk(store, row, below, (uint64_t)chunk, bytes);
		if (have < 0)
			r = (int)have;
		else if (memcmp(bytes, zeros, (size_t)have) && pwrite(fd, bytes, (size_t)have, (off_t)(chunk * STORE_CHUNK)) != have)
			r = errno ? -errno : -EIO;
	}
	if (below >= 0)
		close(below);
	return r ? r : set_xattrs(fd, row);
}

/* Makes the file that a change says, under a temporary name at the top of the directory. */
static int make_file(struct store *store, const struct store_node *row, const char *made)
{
	const char *name;
	int at = below_parent(made, &name), fd = -1, r = 0;

	if (at < 0)
		return -errno;
	if (S_ISLNK(row->mode))
		r = symlinkat(row->target ? row->target : "", at, made) ? -errno : 0;
	else if (S_ISREG(row->mode))
		r = (fd = openat(at, made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0 ? -errno : verb_write_file(store, fd, row);
	else if (S_ISFIFO(row->mode))
		r = mknodat(at, made, S_IFIFO | 0600, 0) ? -errno : 0;
	else
		r = -EOPNOTSUPP;
	if (!r)
		r = verb_set_attributes(at, made, row);
	if (fd >= 0)
		close(fd);
	close(at);
	return r;
}

static int make_directory(const struct verb_change *change)
{
	const char *name;
	int at = below_parent(change->path, &name), r;

	if (at < 0)
		return -errno;
	r = change->kind == 'A' && mkdirat(at, name, 0700) && errno != EEXIST ? -errno : 0;
	close(at);
	return r;
}

static int attributes_of_directory(const struct verb_change *change)
{
	const char *name;
	int at = below_parent(change->path, &name), fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;

	if (at < 0)
		return -errno;
	if (fd >= 0) {
		r = replace_xattrs(fd, &change->node->row);
		close(fd);
	}
	r = r ? r : verb_set_attributes(at, name, &change->node->row);
	close(at);
	return r;
}

/* What becomes of one change. */
enum deed { NOTHING, MADE, MOVES, LINKS };

struct work {
	enum deed deed;
	char temporary[64];
	const char *same;	/* of LINKS: the path that has the file */
};

/* Gives what is at one path another: by moving it, or a further one. */
static int give_name(const char *from, const char *to, int (*give)(int, const char *, int, const char *))
{
	const char *from_name, *to_name;
	int from_at = below_parent(from, &from_name), to_at = from_at < 0 ? -1 : below_parent(to, &to_name), r = 0;

	if (to_at < 0 || give(from_at, from_name, to_at, to_name))
		r = -errno;
	if (from_at >= 0)
		close(from_at);
	if (to_at >= 0)
		close(to_at);
	return r;
}

static int give_link(int from_at, const char *from, int to_at, const char *to)
{
	return linkat(from_at, from, to_at, to, 0);
}

/* By way of the top, so that it takes the place of what is there. */
static int put_link(const struct work *work, const char *path)
{
	int r = give_name(work->same, work->temporary, give_link);

	r = r ? r : give_name(work->temporary, path, renameat);
	/* If both were names of one file, a rename does nothing. */
	return r ? r : remove_below(work->temporary);
}

/* Another change before this one that makes the same file. */
static const struct verb_change *twin(const struct verb_list *list, size_t i)
{
	for (size_t j = 0; j < i && list->changes[i].node->row.nlink > 1; j++)
		if (list->changes[j].node == list->changes[i].node)
			return &list->changes[j];
	return NULL;
}

static enum deed deed_of(const struct verb_list *list, size_t i, struct work *work)
{
	const struct verb_change *change = &list->changes[i], *other;

	if (change->kind == 'D')
		return NOTHING;
	if (change->kind == 'R' && (!change->touched || change->type == S_IFDIR))
		return MOVES;
	if (change->type == S_IFDIR)
		return NOTHING;
	other = twin(list, i);
	work->same = other ? other->path : change->kind != 'R' && change->node->kept && strcmp(change->path, change->node->kept) ? change->node->kept : NULL;
	return work->same ? LINKS : MADE;
}

static int complain(const char *path, int r)
{
	if (r)
		lind_log("%s: %s", verb_shown(path), strerror(-r));
	return r ? 1 : 0;
}

/* Each change has a name at the top that nobody who made the changes could know, and no run before this one has left there. */
static int plan(const struct verb_list *list, struct work *work)
{
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return complain("apply", -EIO);
	for (size_t i = 0; i < list->changes_count; i++) {
		work[i].deed = deed_of(list, i, &work[i]);
		snprintf(work[i].temporary, sizeof work[i].temporary, TEMPORARY "%016llx-%zu", (unsigned long long)random, i);
	}
	return 0;
}

/* Contents first, while all that shows through is where it was: if that fails, nothing has been changed. */
static int make_files(struct store *store, const struct verb_list *list, const struct work *work)
{
	for (size_t i = 0; i < list->changes_count; i++) {
		int r = work[i].deed == MADE ? make_file(store, &list->changes[i].node->row, work[i].temporary) : 0;

		if (r)
			return complain(list->changes[i].path, r);
	}
	/* At once: one after the other, ten thousand small files would take a minute. */
	return complain("apply", below_sync());
}

static int put_in_place(const struct verb_change *change, const struct work *work)
{
	int r;

	switch (work->deed) {
	case MADE: case MOVES:
		r = give_name(work->temporary, change->path, renameat);
		/* If both are names of one file, a rename does nothing. */
		return r ? r : remove_below(work->temporary);
	case LINKS:
		return 0;
	default:
		return change->kind != 'D' && change->type == S_IFDIR ? make_directory(change) : 0;
	}
}

static int deepest_first(const void *a, const void *b)
{
	const struct verb_change *const *one = a, *const *other = b;

	return strcmp((*other)->from, (*one)->from);
}

/* Takes away what moves or goes: by where it was, the deepest first, so that a directory goes with nothing in it that has a way of its own. */
static int take_away(const struct verb_list *list, const struct work *work)
{
	const struct verb_change **going = calloc(list->changes_count + 1, sizeof *going);
	size_t count = 0;
	int status = going ? 0 : complain("apply", -ENOMEM);

	for (size_t i = 0; i < list->changes_count && !status; i++)
		if (list->changes[i].kind == 'D' || list->changes[i].kind == 'R')
			going[count++] = &list->changes[i];
	if (count)
		qsort(going, count, sizeof *going, deepest_first);
	for (size_t i = 0; i < count && !status; i++) {
		const struct work *its = &work[going[i] - list->changes];

		status = complain(going[i]->path, its->deed == MOVES ? give_name(going[i]->from, its->temporary, renameat) : remove_below(going[i]->from));
	}
	free(going);
	return status;
}

static int give_back(int from_at, const char *from, int to_at, const char *to)
{
	return (int)syscall(SYS_renameat2, from_at, from, to_at, to, RENAME_NOREPLACE);
}

/* After a failure: what was set aside goes back to where nothing else has come, the directories first, and what was made and not put in place goes. */
static void clean_up(const struct verb_list *list, const struct work *work)
{
	bool any = true;

	while (any) {
		any = false;
		for (size_t i = 0; i < list->changes_count; i++)
			any |= work[i].deed == MOVES && !give_name(work[i].temporary, list->changes[i].from, give_back);
	}
	for (size_t i = 0; i < list->changes_count; i++)
		if (work[i].deed == MADE || work[i].deed == LINKS)
			remove_below(work[i].temporary);
}

/* Then what comes, the highest first, and further names of what is there. Renames go by way of the top: two files may have changed places. */
static int make_below(struct store *store, const struct verb_list *list)
{
	struct work *work = calloc(list->changes_count + 1, sizeof *work);
	int status = work ? plan(list, work) : 1;

	if (!status)
		status = make_files(store, list, work);
	if (!status)
		status = take_away(list, work);
	for (size_t i = 0; i < list->changes_count && !status; i++)
		status = complain(list->changes[i].path, put_in_place(&list->changes[i], &work[i]));
	for (size_t i = 0; i < list->changes_count && !status; i++)
		if (work[i].deed == LINKS)
			status = complain(list->changes[i].path, put_link(&work[i], list->changes[i].path));
	for (size_t i = list->changes_count; i-- && !status;)
		if (list->changes[i].kind != 'D' && list->changes[i].type == S_IFDIR)
			status = complain(list->changes[i].path, attributes_of_directory(&list->changes[i]));
	if (status && work)
		clean_up(list, work);
	free(work);
	return status;
}

static int leave_state(struct store *store, const struct verb_options *options, const struct verb_list *list)
{
	int r = 0;

	if (!options->words_count) {
		r = store_rollback(store, NULL);
		return r ? verb_failed(store, r) : 0;
	}
	for (size_t i = 0; i < list->changes_count && !r; i++) {
		const struct verb_change *change = &list->changes[i];
		const struct verb_entry *left = change->kind == 'R' ? verb_left(list, change->from) : NULL;

		r = store_unname(store, change->dir, change->name);
		if (!r && left)
			r = store_unname(store, left->dir, left->name);
		if (!r && change->node && !S_ISDIR(change->node->row.mode) && change->node->row.nlink < 2)
			r = store_forget(store, change->node->row.ino);
	}
	if (!r)
		r = store_commit(store, true);
	return r ? verb_failed(store, r) : 0;
}

/* Says what has been changed below since it was first changed here. */
static bool is_any_stale(const struct verb_list *list)
{
	bool any = false;

	for (size_t i = 0; i < list->changes_count; i++) {
		if (!verb_is_stale(&list->changes[i]))
			continue;
		lind_log("%s: has been changed in the directory too", verb_shown(list->changes[i].path));
		any = true;
	}
	return any;
}

static int by_path(const void *path, const void *change)
{
	return strcmp(path, ((const struct verb_change *)change)->path);
}

/* Says what comes to a directory that is not there, nor comes with it. */
static bool is_any_without_directory(const struct verb_list *list)
{
	bool any = false;

	for (size_t i = 0; i < list->changes_count; i++) {
		const struct verb_change *change = &list->changes[i];
		const char *slash = strrchr(change->path, '/'), *name;
		char *above = change->kind != 'D' && slash ? strndup(change->path, (size_t)(slash - change->path)) : NULL;
		int at = above ? below_parent(change->path, &name) : -1;

		if (at >= 0) {
			close(at);
		} else if (above && !bsearch(above, list->changes, list->changes_count, sizeof *list->changes, by_path)) {
			lind_log("%s: its directory is new or renamed; apply that", verb_shown(change->path));
			any = true;
		}
		free(above);
	}
	return any;
}

int verb_apply(struct store *store, const struct verb_options *options)
{
	static struct verb_list list;
	int status = verb_list(store, options, &list);

	if (status || (status = is_any_without_directory(&list)))
		return status;
	if (is_any_stale(&list) && !options->force) {
		lind_log("nothing was applied; --force applies it all the same, with what lies in the state instead of what has changed");
		return 1;
	}
	if (options->dry_run) {
		verb_print_names(&list);
		return 0;
	}
	status = make_below(store, &list);
	return status ? status : leave_state(store, options, &list);
}

int verb_discard(struct store *store, const struct verb_options *options)
{
	static struct verb_list list;
	int status = verb_list(store, options, &list);

	return status ? status : leave_state(store, options, &list);
}
