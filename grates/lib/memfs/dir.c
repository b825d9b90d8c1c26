/*
 * Directories: names hashed for lookup, and in order of creation for reading. An entry's place in
 * that order is its cookie, which never changes, so a reader misses and repeats nothing while names
 * come and go, and comes to an end.
 */
#include <dirent.h>
#include <stdlib.h>
#include "watch.h"

#define FIRST_COOKIE       3  /* 1 and 2 are `.` and `..` */
#define ENTRY_COST(length) (sizeof(struct imfs_entry) + (length) + 1)

static uint64_t eight(const char *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof word);
	return word;
}

/* The number for the rest of a name that is shorter than a word. Different rests of one length
 * have different numbers. */
static uint64_t fewer(const char *p, size_t n)
{
	uint32_t first, last;

	if (n < 4)
		return n ? (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[n / 2] << 8 | (uint8_t)p[n - 1] : 0;
	memcpy(&first, p, sizeof first);
	memcpy(&last, p + n - 4, sizeof last);
	return (uint64_t)last << 32 | first;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 by the golden ratio */
	return h ^ h >> 32;
}

/* By words, the last of which may overlap the one before: a multiplication for each byte took
 * longer than the rest of a short walk. */
static uint32_t hash_of(const char *name, size_t length)
{
	uint64_t h = length;

	if (length < 8)
		return (uint32_t)mix(h, fewer(name, length));
	for (size_t i = 0; i + 8 < length; i += 8)
		h = mix(h, eight(name + i));
	return (uint32_t)mix(h, eight(name + length - 8));
}

int imfs_dir_init(struct imfs_node *n, struct imfs_node *parent)
{
	n->dir.bucket_count = 8;
	n->dir.next_cookie = FIRST_COOKIE;
	n->dir.parent = parent;
	n->dir.buckets = calloc(n->dir.bucket_count, sizeof *n->dir.buckets);
	return n->dir.buckets ? 0 : -ENOSPC;
}

/* Names are short: a call of memcmp would cost more. */
static bool same(const char *a, const char *b, size_t length)
{
	if (length < 8)
		return fewer(a, length) == fewer(b, length);
	for (size_t i = 0; i + 8 < length; i += 8)
		if (eight(a + i) != eight(b + i))
			return false;
	return eight(a + length - 8) == eight(b + length - 8);
}

struct imfs_entry *imfs_dir_find(const struct imfs_node *dir, const char *name, size_t length)
{
	uint32_t hash = hash_of(name, length);
	struct imfs_entry *e;

	for (e = dir->dir.buckets[hash & (dir->dir.bucket_count - 1)]; e; e = e->same_hash)
		if (e->hash == hash && e->length == length && same(e->name, name, length))
			break;
	return e;
}

/* More buckets; without memory for them lookups only get slower. */
static void widen(struct imfs_dir *d)
{
	uint32_t count = d->bucket_count * 4;
	struct imfs_entry **buckets = calloc(count, sizeof *buckets);

	if (!buckets)
		return;
	for (struct imfs_entry *e = d->first; e; e = e->after) {
		e->same_hash = buckets[e->hash & (count - 1)];
		buckets[e->hash & (count - 1)] = e;
	}
	free(d->buckets);
	d->buckets = buckets;
	d->bucket_count = count;
}

static void leads(struct imfs_entry *e, struct imfs_node *n)
{
	e->node = n;
	e->other = n->names;
	n->names = e;
}

static void leads_no_more(struct imfs_entry *e)
{
	struct imfs_entry **at = &e->node->names;

	while (*at != e)
		at = &(*at)->other;
	*at = e->other;
}

void imfs_entry_leads(struct imfs_entry *e, struct imfs_node *n)
{
	leads_no_more(e);
	leads(e, n);
	e->moved = true;
}

int imfs_dir_put(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length, struct imfs_node *n)
{
	struct imfs_dir *d = &dir->dir;
	struct imfs_entry *e, **bucket;

	if (d->removed)
		return -ENOENT;
	if (imfs_charge(fs, ENTRY_COST(length)))
		return -ENOSPC;
	if (!(e = malloc(ENTRY_COST(length)))) {
		fs->used -= ENTRY_COST(length);
		return -ENOSPC;
	}
	if (d->count >= d->bucket_count * 2)
		widen(d);
	leads(e, n);
	e->dir = dir;
	e->lower = e->stored = e->moved = false;
	e->cookie = d->next_cookie++;
	e->hash = hash_of(name, length);
	e->length = (uint16_t)length;
	memcpy(e->name, name, length);
	e->name[length] = 0;
	bucket = &d->buckets[e->hash & (d->bucket_count - 1)];
	e->same_hash = *bucket;
	*bucket = e;
	e->after = NULL;
	e->before = d->last;
	*(d->last ? &d->last->after : &d->first) = e;
	d->last = e;
	d->count++;
	if (S_ISDIR(n->mode))
		n->dir.parent = dir;
	return 0;
}

int imfs_dir_add(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length, struct imfs_node *n)
{
	int r = imfs_dir_put(fs, dir, name, length, n);

	if (r)
		return r;
	dir->nlink += S_ISDIR(n->mode);
	dir->mtime = dir->ctime = imfs_now();
	imfs_changed(dir);
	imfs_changed(n);
	return 0;
}

void imfs_dir_drop(struct imfs *fs, struct imfs_entry *e)
{
	struct imfs_dir *d = &e->dir->dir;
	struct imfs_entry **at = &d->buckets[e->hash & (d->bucket_count - 1)];

	while (*at != e)
		at = &(*at)->same_hash;
	*at = e->same_hash;
	*(e->before ? &e->before->after : &d->first) = e->after;
	*(e->after ? &e->after->before : &d->last) = e->before;
	d->count--;
	leads_no_more(e);
	fs->used -= ENTRY_COST(e->length);
	free(e);
}

/* Takes the name away; the node's own link count is for the caller to change. */
void imfs_dir_remove(struct imfs *fs, struct imfs_node *dir, struct imfs_entry *e)
{
	if (dir->under)
		imfs_below->unnamed(e);
	imfs_changed(e->node);
	dir->nlink -= S_ISDIR(e->node->mode);
	imfs_dir_drop(fs, e);
	dir->mtime = dir->ctime = imfs_now();
	imfs_changed(dir);
}

void imfs_dir_orphan(struct imfs_node *n)
{
	n->nlink = 0;
	n->dir.removed = true;
	imfs_node_hold(n->dir.parent);
}

void imfs_dir_free(struct imfs *fs, struct imfs_node *n)
{
	if (n->dir.removed)
		imfs_node_drop(fs, n->dir.parent);
	while (n->dir.first)
		imfs_dir_drop(fs, n->dir.first);
	free(n->dir.buckets);
	n->dir.buckets = NULL;
}

bool imfs_dir_above(const struct imfs_node *dir, const struct imfs_node *below)
{
	for (;; below = below->dir.parent) {
		if (below == dir)
			return true;
		if (below->dir.parent == below)
			return false;
	}
}

int imfs_node_path(const struct imfs *fs, const struct imfs_node *dir, char *path, size_t size)
{
	char reversed[IMFS_PATH];
	size_t at = sizeof reversed, length = strlen(fs->prefix);

	for (; dir != fs->root; dir = dir->dir.parent) {
		const struct imfs_entry *e = dir->names;

		if (!e)
			return -ENOENT;
		if (at < (size_t)e->length + 1)
			return -ENAMETOOLONG;
		at -= e->length;
		memcpy(reversed + at, e->name, e->length);
		reversed[--at] = '/';
	}
	if (!length && at == sizeof reversed)
		reversed[--at] = '/';
	if (length + sizeof reversed - at + 1 > size)
		return -ERANGE;
	memcpy(path, fs->prefix, length);
	memcpy(path + length, reversed + at, sizeof reversed - at);
	length += sizeof reversed - at;
	path[length] = 0;
	return (int)length;
}

/* A linux_dirent64 record; false if it does not fit. */
static bool emit(uint8_t *buffer, size_t size, size_t *used, uint64_t ino, uint64_t cookie, uint32_t mode,
    const char *name, size_t length)
{
	size_t record = (19 + length + 1 + 7) & ~(size_t)7;
	uint16_t reclen = (uint16_t)record;
	uint8_t *to = buffer + *used;

	if (size - *used < record)
		return false;
	memset(to, 0, record);
	memcpy(to, &ino, 8);
	memcpy(to + 8, &cookie, 8);
	memcpy(to + 16, &reclen, 2);
	to[18] = (uint8_t)((mode & S_IFMT) >> 12);
	memcpy(to + 19, name, length);
	*used += record;
	return true;
}

int64_t imfs_getdents(struct imfs *fs, struct imfs_file *f, void *buffer, size_t size)
{
	struct imfs_node *dir = f->node;
	const struct imfs_entry *e;
	size_t used = 0;
	bool room = true;
	int r;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	if (dir->dir.removed)
		return -ENOENT;
	if ((r = imfs_dir_list(fs, dir, NULL, 0)))
		return r;
	/* Entries that are made during a reading are for the next one: a client that renames each entry
	 * it reads would meet them again without end. */
	if (!f->last_cookie || !f->pos)
		f->last_cookie = dir->dir.next_cookie;
	if (f->pos < 1 && (room = emit(buffer, size, &used, dir->ino, 1, S_IFDIR, ".", 1)))
		f->pos = 1;
	if (room && f->pos < 2 && (room = emit(buffer, size, &used, dir->dir.parent->ino, 2, S_IFDIR, "..", 2)))
		f->pos = 2;
	/* Most often the reader goes on where it stopped, near the end: start from the nearer end. */
	e = dir->dir.last;
	if (f->pos < (int64_t)(dir->dir.next_cookie / 2)) {
		for (e = dir->dir.first; e && (int64_t)e->cookie <= f->pos;)
			e = e->after;
	} else {
		while (e && e->before && (int64_t)e->before->cookie > f->pos)
			e = e->before;
		if (e && (int64_t)e->cookie <= f->pos)
			e = NULL;
	}
	for (; room && e && e->cookie < f->last_cookie; e = e->after)
		if ((room = emit(buffer, size, &used, e->node->ino, e->cookie, e->node->mode, e->name, e->length)))
			f->pos = (int64_t)e->cookie;
	if (!used && !room)
		return -EINVAL;
	imfs_tell(dir, IN_ACCESS);
	return (int64_t)used;
}
