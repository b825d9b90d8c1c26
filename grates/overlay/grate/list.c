/* Names and attributes of the lower directory, and what the state says instead. */
#include <dirent.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "list.h"
#include "lower.h"
#include "nodes.h"
#include "saved.h"
#include "watches.h"

/* A directory while its names are collected. */
struct listing {
	struct imfs_node *dir;
	char **removed;  /* sorted once all are there */
	size_t count, room;
	const char *only; /* the one name that is asked for, or NULL */
	int failed;
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_removed(struct listing *l, const char *name)
{
	if (l->count == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		char **grown = realloc(l->removed, room * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		l->removed = grown;
		l->room = room;
	}
	if (!(l->removed[l->count] = strdup(name)))
		return -ENOMEM;
	l->count++;
	return 0;
}

/* A name of which the state has a row. */
static int each_row(void *to, const char *name, uint64_t ino)
{
	struct listing *l = to;
	size_t length = strlen(name);
	struct imfs_node *n;
	int r;

	if (l->only && strcmp(l->only, name))
		return 0;
	if (!ino)
		return l->failed = add_removed(l, name);
	if (!length || length > IMFS_NAME || imfs_dir_find(l->dir, name, length))
		return 0;
	if (!(n = node_of_row(ino, l->dir))) {
		lind_log("%s: the state is damaged: this name is of inode %llu, which is missing", name,
		    (unsigned long long)ino);
		return 0;
	}
	if ((r = imfs_dir_put(&fs, l->dir, name, length, n))) {
		imfs_node_settle(&fs, n);
		return l->failed = r;
	}
	imfs_dir_find(l->dir, name, length)->stored = true;
	return 0;
}

static bool same_stamp(const struct store_stamp *a, const struct store_stamp *b)
{
	return a->ino == b->ino && a->size == b->size && !memcmp(&a->mtime, &b->mtime, sizeof a->mtime) &&
	    !memcmp(&a->ctime, &b->ctime, sizeof a->ctime);
}

static struct timespec time_of(const struct statx_timestamp *t)
{
	struct timespec time;

	memset(&time, 0, sizeof time);
	time.tv_sec = t->tv_sec;
	time.tv_nsec = (long)t->tv_nsec;
	return time;
}

static struct store_stamp stamp_of(const struct statx *st)
{
	struct store_stamp stamp;

	memset(&stamp, 0, sizeof stamp);
	stamp.ino = st->stx_ino;
	stamp.size = (int64_t)st->stx_size;
	stamp.mtime = time_of(&st->stx_mtime);
	stamp.ctime = time_of(&st->stx_ctime);
	return stamp;
}

/*
 * The node that a lower name shares with another one: a hard link. Numbers are used again for other
 * files, so that the number alone says nothing: the file must have more names, and be the one that
 * was changed, if it was. NULL: it has a node of its own, and that number may not be free: `*ino`
 * becomes 0 then.
 */
static struct imfs_node *linked(struct imfs_node *dir, const char *origin, uint64_t *ino)
{
	struct imfs_node *n = node_by_ino(*ino);
	/* The state may have it in another layer only. */
	struct store_node found;
	bool row = store && store_has(store, *ino) && store_get(store, *ino, &found) == 1;
	struct store_stamp stamp;
	struct statx st;

	if (!n && !row)
		return NULL;
	if (!lower_stat(origin, &st) && !S_ISDIR(st.stx_mode) && st.stx_nlink > 1 && lower_is_home(&st) &&
	    (n || (n = node_of_row(*ino, dir)))) {
		stamp = stamp_of(&st);
		if (!S_ISDIR(n->mode) && (n->unknown || same_stamp(&stamp, &n->under->stamp)))
			return n;
	}
	*ino = 0;
	return NULL;
}

static uint32_t names_of(const struct imfs_node *n)
{
	uint32_t names = 0;

	for (const struct imfs_entry *e = n->names; e; e = e->other)
		names++;
	return names;
}

/* As it will be when something is known of it. Takes `origin` over. */
static int make_lower(struct imfs_node *dir, const char *name, size_t length, uint64_t ino, uint32_t type, char *origin)
{
	bool foreign = dir->under->foreign;
	struct imfs_node *n = NULL;
	int r;

	ino = foreign ? 0 : ino;
	if (ino)
		n = linked(dir, origin, &ino);
	if (!n) {
		if (!(n = node_make(type, ino, dir))) {
			free(origin);
			return -ENOMEM;
		}
		node_shows(n, origin);
		n->under->foreign = foreign;
		n->under->xattrs_known = false;
		n->unknown = true;
		n->unlisted = S_ISDIR(type);
		origin = NULL;
	}
	free(origin);
	if ((r = imfs_dir_put(&fs, dir, name, length, n))) {
		if (!n->names)
			n->nlink = 0;
		imfs_node_settle(&fs, n);
		return r;
	}
	imfs_dir_find(dir, name, length)->lower = true;
	/* Somebody has made more links below since they were counted. */
	if (!S_ISDIR(n->mode) && n->nlink < names_of(n))
		n->nlink = names_of(n);
	return 0;
}

/* A name that the lower directory has. `type` 0: it does not say of what kind. */
static int add_lower(struct listing *l, const char *name, uint64_t ino, uint32_t type)
{
	size_t length = strlen(name);
	struct imfs_entry *e;
	struct statx st;
	char *origin;
	int r;

	if (!length || length > IMFS_NAME || (l->count && bsearch(&name, l->removed, l->count, sizeof name, compare)))
		return 0;
	if ((e = imfs_dir_find(l->dir, name, length))) {
		e->lower = true;
		return 0;
	}
	if (!(origin = lower_join(l->dir->under->origin, name)))
		return -ENOMEM;
	if (!type || !ino) {
		if ((r = lower_stat(origin, &st))) {
			free(origin);
			return r == -ENOENT ? 0 : r;
		}
		type = st.stx_mode & S_IFMT;
		ino = st.stx_ino;
	}
	return make_lower(l->dir, name, length, ino, type, origin);
}

/* All names of the lower directory. */
static int read_lower(struct listing *l)
{
	static char buffer[32768]; /* under the lock */
	int fd = lower_dir(l->dir->under->origin), r = 0;
	long got;

	if (fd < 0)
		return fd;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while (!r && (got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
		for (long at = 0; at < got && !r;) {
			const struct dirent *e = (const struct dirent *)(buffer + at);

			at += e->d_reclen;
			if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
				r = add_lower(l, e->d_name, e->d_ino, (uint32_t)e->d_type << 12);
		}
	return r ? r : got < 0 ? -errno : 0;
}

static void free_listing(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->removed[i]);
	free(l->removed);
}

/* One name of a directory that cannot be read. */
static int list_one(struct listing *l, const char *name, size_t length)
{
	char copy[IMFS_NAME + 1];

	if (length > IMFS_NAME)
		return 0;
	memcpy(copy, name, length);
	copy[length] = 0;
	return add_lower(l, copy, 0, 0);
}

/* Finds the names that are removed, in this run or in the state. */
static int find_removed(struct listing *l)
{
	struct imfs_under *u = l->dir->under;
	int r = 0;

	if (store && u->row && (r = store_names(store, row_ino(l->dir), each_row, l)) > 0)
		r = 0;
	r = l->failed ? l->failed : r;
	for (const struct left_out *o = u->left_out; o && !r; o = o->next)
		r = add_removed(l, o->name);
	qsort(l->removed, l->count, sizeof *l->removed, compare);
	u->hidden = (uint32_t)l->count;
	return r;
}

static void listed(struct imfs_node *dir)
{
	uint32_t links = 2;

	for (const struct imfs_entry *e = dir->dir.first; e; e = e->after)
		links += S_ISDIR(e->node->mode);
	dir->nlink = links;
	dir->unlisted = false;
}

int list_names(struct imfs *filesystem, struct imfs_node *dir, const char *name, size_t length)
{
	struct imfs_under *u = dir->under;
	struct listing l = { .dir = dir };
	int r = 0;

	(void)filesystem;
	store_enter();
	r = find_removed(&l);
	if (!r && u->origin && !u->blind)
		watch_dir(u);
	if (!r && u->origin && !u->blind && (r = read_lower(&l)) == -EACCES) {
		u->blind = true;
		r = 0;
	}
	if (!r && u->blind)
		r = name ? list_one(&l, name, length) : -EACCES;
	else if (!r)
		listed(dir);
	/* A directory that is gone meanwhile has no names. */
	if (r == -ENOENT) {
		listed(dir);
		r = 0;
	}
	store_leave();
	free_listing(&l);
	return r;
}

int list_vanished(struct imfs_node *n)
{
	imfs_node_hold(n);
	while (n->names) {
		struct imfs_node *dir = n->names->dir;

		dir->nlink -= S_ISDIR(n->mode) && !dir->unlisted;
		imfs_dir_drop(&fs, n->names);
	}
	/* Some process may have it as its working directory. */
	if (S_ISDIR(n->mode))
		imfs_dir_orphan(n);
	n->nlink = 0;
	imfs_node_drop(&fs, n);
	return -ENOENT;
}

static void take_attributes(struct imfs_node *n, const struct statx *st)
{
	struct imfs_under *u = n->under;
	uint32_t names = names_of(n);

	n->mode = st->stx_mode;
	n->uid = st->stx_uid;
	n->gid = st->stx_gid;
	n->rdev = makedev(st->stx_rdev_major, st->stx_rdev_minor);
	n->size = S_ISREG(n->mode) ? (int64_t)least((int64_t)st->stx_size, IMFS_MAX_SIZE) : 0;
	n->atime = time_of(&st->stx_atime);
	n->mtime = time_of(&st->stx_mtime);
	n->ctime = time_of(&st->stx_ctime);
	n->btime = st->stx_mask & STATX_BTIME ? time_of(&st->stx_btime) : n->ctime;
	u->origin_size = n->size;
	u->blocks = st->stx_blocks;
	u->stamp = stamp_of(st);
	n->lazy = n->size > 0;
	if (!S_ISDIR(n->mode))
		n->nlink = st->stx_nlink > names ? st->stx_nlink : names;
	else if (n->unlisted)
		n->nlink = st->stx_nlink > 2 ? st->stx_nlink : 2;
}

int know_node(struct imfs *filesystem, struct imfs_node *n)
{
	struct imfs_under *u = n->under;
	char target[IMFS_PATH];
	struct statx st;
	int r = lower_stat(u->origin, &st);

	if (!r && (st.stx_mode & S_IFMT) != (n->mode & S_IFMT))
		r = -ENOENT;
	if (!r && S_ISLNK(st.stx_mode) && (r = lower_link(u->origin, target, sizeof target)) >= 0) {
		free(n->target);
		r = (n->target = strdup(target)) ? 0 : -ENOMEM;
	}
	if (r)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? list_vanished(n) : r;
	take_attributes(n, &st);
	if (S_ISLNK(n->mode))
		n->size = (int64_t)strlen(n->target);
	if (!u->foreign && !lower_is_home(&st)) {
		u->foreign = true;
		node_renumber(n, fs.next_ino++);
	}
	n->unknown = false;
	/* Some filesystems do not count subdirectories: we do. A directory that we cannot read stays as
	 * it is. */
	if (S_ISDIR(n->mode) && st.stx_nlink < 2 && (r = list_names(filesystem, n, NULL, 0)) && r != -EACCES)
		return r;
	return 0;
}

static int take_xattr(struct imfs_node *n, int fd, const char *name)
{
	static char value[IMFS_XATTR]; /* under the lock */
	ssize_t size = fgetxattr(fd, name, value, sizeof value);

	if (strncmp(name, "user.", 5) || size < 0)
		return 0;
	return imfs_xattr_add(&fs, n, name, value, (size_t)size);
}

int know_xattrs(struct imfs *filesystem, struct imfs_node *n)
{
	static char names[IMFS_XATTR]; /* under the lock */
	struct imfs_under *u = n->under;
	ssize_t length = 0;
	int fd, r = 0;

	(void)filesystem;
	if (u->xattrs_known)
		return 0;
	u->xattrs_known = true;
	if (!u->origin || (!S_ISREG(n->mode) && !S_ISDIR(n->mode)))
		return 0;
	/* A file that may not be read has no attributes here. */
	if ((fd = S_ISDIR(n->mode) ? lower_dir(u->origin) : lower_file(u)) >= 0)
		length = flistxattr(fd, names, sizeof names);
	for (const char *name = names; !r && length > 0 && name < names + length; name += strlen(name) + 1)
		r = take_xattr(n, fd, name);
	return r;
}
