/* From memory to the state. A flush writes the tree of that moment, as one transaction. So the
 * state always holds a tree that has existed. */
#include <pthread.h>
#include <unistd.h>
#include "flush.h"
#include "cache.h"
#include "list.h"
#include "log.h"
#include "lower.h"
#include "marks.h"
#include "nodes.h"
#include "saved.h"

#define SECONDS 5  /* that a change stays in memory only */

static uint64_t kept_ino; /* next_ino as the state has it */
static bool undurable;  /* something was committed that may not be on the disk yet */

/* All of a file's, one behind the other. Malloc; NULL if it has none. */
static void *pack_xattrs(const struct imfs_node *n, uint32_t *size)
{
	uint8_t *bytes, *at;

	*size = 0;
	for (const struct imfs_xattr *x = n->xattrs; x; x = x->next)
		*size += (uint32_t)strlen(x->name) + 1 + (uint32_t)sizeof x->size + x->size;
	if (!*size || !(bytes = malloc(*size)))
		return NULL;
	at = bytes;
	for (const struct imfs_xattr *x = n->xattrs; x; x = x->next) {
		size_t length = strlen(x->name) + 1;

		memcpy(at, x->name, length);
		memcpy(at + length, &x->size, sizeof x->size);
		memcpy(at + length + sizeof x->size, x->name + length, x->size);
		at += length + sizeof x->size + x->size;
	}
	return bytes;
}

static int put_row(struct imfs_node *n)
{
	struct imfs_under *u = n->under;
	struct store_node row = {
		.ino = row_ino(n),
		.rdev = n->rdev,
		.mode = n->mode,
		.nlink = n->nlink,
		.uid = n->uid,
		.gid = n->gid,
		.size = n->size,
		.atime = n->atime,
		.mtime = n->mtime,
		.ctime = n->ctime,
		.btime = n->btime,
		.origin = u->origin,
		.origin_size = u->origin_size,
		.stamp = u->stamp,
		.target = n->target,
	};
	void *xattrs;
	int r;

	if ((r = know_xattrs(&fs, n)))
		return r;
	xattrs = pack_xattrs(n, &row.xattrs_size);
	if (row.xattrs_size && !xattrs)
		return -ENOMEM;
	row.xattrs = xattrs;
	r = store_put(store, &row);
	free(xattrs);
	if (r < 0)
		return r;
	u->row = true;
	for (struct imfs_entry *e = n->names; e && r >= 0; e = e->other)
		if ((!e->stored || e->moved) && !(r = store_name(store, row_ino(e->dir), e->name, n->ino))) {
			e->stored = true;
			e->moved = false;
		}
	return r < 0 ? r : 0;
}

/* Rows of all directories above, from the root down: by them it is found. */
static int put_above(struct imfs_node *dir)
{
	struct imfs_node **all;
	size_t depth = 0;
	int r = 0;

	for (struct imfs_node *d = dir; !d->under->row; d = d->dir.parent) {
		depth++;
		if (d == d->dir.parent)
			break;
	}
	if (!depth)
		return 0;
	if (!(all = malloc(depth * sizeof *all)))
		return -ENOMEM;
	for (size_t i = depth; i-- > 0; dir = dir->dir.parent)
		all[i] = dir;
	for (size_t i = 0; i < depth && !r; i++)
		r = put_row(all[i]);
	free(all);
	return r;
}

static int put_chunk(struct imfs_node *n, struct imfs_chunk *c)
{
	static uint8_t whole[STORE_CHUNK]; /* under the lock */
	int64_t start = (int64_t)(c->index * IMFS_CHUNK), left = n->size - start;
	uint16_t mask = c->dirty;
	const uint8_t *bytes = c->data;
	int r;

	if (left < (int64_t)IMFS_CHUNK)
		mask &= left <= 0 ? 0 : (uint16_t)((1u << (left + IMFS_BLOCK - 1) / IMFS_BLOCK) - 1);
	if (mask && c->room < STORE_CHUNK) {
		memset(whole, 0, sizeof whole);
		memcpy(whole, c->data, c->room);
		bytes = whole;
	}
	if (mask && (r = store_write(store, n->ino, c->index, mask, bytes)) < 0)
		return r;
	/* Bytes behind the end are being written just now. */
	c->dirty &= (uint16_t)~mask;
	if (mask)
		cache_stored(n->under, c->index);
	if (mask)
		n->under->stored_end = n->size > n->under->stored_end ? n->size : n->under->stored_end;
	n->lazy = n->lazy || mask;
	return 0;
}

/* The blocks of a file that clients write to by themselves, as far as they are other ones than
 * below. */
static int compare_chunk(struct imfs_node *n, uint64_t index, bool *differs)
{
	static uint8_t below[IMFS_CHUNK], here[IMFS_CHUNK]; /* under the lock */
	int64_t start = (int64_t)(index * IMFS_CHUNK), length = least(n->size - start, IMFS_CHUNK);
	uint16_t mask = 0;
	int r;

	store_leave();
	r = cache_fill(n, index, below, IMFS_CHUNK);
	store_enter();
	if (r || !memcmp(below, n->data.backing->base + start, (size_t)length))
		return r;
	/* They may write to it just now. */
	memset(here, 0, sizeof here);
	memcpy(here, n->data.backing->base + start, (size_t)length);
	for (int64_t at = 0; at < length; at += IMFS_BLOCK)
		if (memcmp(below + at, here + at, IMFS_BLOCK))
			mask |= (uint16_t)(1u << at / IMFS_BLOCK);
	*differs = true;
	cache_stored(n->under, index);
	n->under->stored_end = n->size;
	r = store_write(store, n->ino, index, mask, here);
	return r < 0 ? r : 0;
}

static int put_backing(struct imfs_node *n, bool *differs)
{
	int r = 0;

	for (uint64_t index = 0; !r && (int64_t)(index * IMFS_CHUNK) < n->size; index++)
		r = compare_chunk(n, index, differs);
	n->lazy = n->lazy || *differs;
	return r;
}

static int put_contents(struct imfs_node *n)
{
	struct imfs_under *u = n->under;
	bool differs = false;
	int r = 0;

	if (u->cut != INT64_MAX) {
		if ((r = store_cut(store, n->ino, u->cut)) < 0)
			return r;
		u->stored_end = least(u->stored_end, u->cut);
		u->cut = INT64_MAX;
	}
	if (n->data.backing) {
		r = u->compared ? 0 : put_backing(n, &differs);
		u->compared = false;
		return r;
	}
	for (uint32_t i = 0; i < n->data.count; i++)
		if (n->data.chunks[i].dirty && (r = put_chunk(n, &n->data.chunks[i])))
			return r;
	return 0;
}

/* A node that is other than its row. One without names is in nobody's way: it goes when it is
 * closed. */
static int put_node(struct imfs_node *n)
{
	struct imfs_under *u = n->under;
	bool is_new = !u->row && !u->origin;
	int r;

	if (!n->nlink || (!n->names && n != fs.root && !u->row))
		return 0;
	for (struct imfs_entry *e = n->names; e; e = e->other)
		if ((r = put_above(e->dir)))
			return r;
	/* A directory that is only another one for a name in it has a line for that. */
	if (!(S_ISDIR(n->mode) && !is_new) && (r = log_made_or_changed(n, is_new)))
		return r;
	if ((r = put_row(n)))
		return r;
	return S_ISREG(n->mode) ? put_contents(n) : 0;
}

static int put_unnamed(const struct unnamed *u)
{
	struct imfs_node *dir = node_by_ino(u->dir);
	struct imfs_node *n = node_by_ino(u->ino);
	bool hides = u->what == HIDES;
	struct statx st;
	char *path;
	int r;

	/* A new file with that name says so itself. */
	if (!dir || !S_ISDIR(dir->mode) || dir->dir.removed || imfs_dir_find(dir, u->name, strlen(u->name)))
		return 0;
	if (u->what == UNSURE && dir->under->origin) {
		if (!(path = lower_join(dir->under->origin, u->name)))
			return -ENOMEM;
		hides = !lower_stat(path, &st);
		free(path);
	}
	if (!hides && !u->stored)
		return 0;
	if ((r = put_above(dir)) || (r = log_unnamed(dir, u->name, n, u->who)))
		return r;
	r = hides ? store_name(store, row_ino(dir), u->name, 0) : store_unname(store, row_ino(dir), u->name);
	return r < 0 ? r : 0;
}

static int put_mapped(void)
{
	struct imfs_under **at = &marks_mapped, *u;
	bool differs;
	int r = 0;

	while (!r && (u = *at)) {
		struct imfs_node *n = u->node;

		differs = false;
		if (n->nlink && n->names && n->data.backing && !u->at_dirty && !(r = put_backing(n, &differs)) &&
		    differs) {
			n->mtime = n->ctime = imfs_now();
			note_changed(n);
			u->compared = true;
		}
		/* It is looked at once more after the last mapping is gone. */
		if (!n->mappers) {
			*at = u->next_mapped;
			u->mapped = false;
		} else
			at = &u->next_mapped;
	}
	return r;
}

/* The lock and the mutex are held. */
static int put_all(void)
{
	int r = 0;

	while (!r && marks_unnamed) {
		struct unnamed *u = take_unnamed();

		r = put_unnamed(u);
		free(u);
	}
	for (size_t i = 0; i < marks_gone_count && !r; i++)
		r = (r = store_forget(store, marks_gone[i])) < 0 ? r : 0;
	marks_gone_count = 0;
	r = r ? r : put_mapped();
	while (!r && marks_dirty) {
		struct imfs_under *u = marks_dirty;

		mark_clean(u);
		r = put_node(u->node);
	}
	marks_dirty_bytes = 0;
	if (!r && kept_ino != fs.next_ino && (r = store_took_ino(store, fs.next_ino)) >= 0) {
		kept_ino = fs.next_ino;
		r = 0;
	}
	return r;
}

static const char *problem(int error)
{
	return error == -ENOMEM ? "no memory" : store_problem(store);
}

static int commit(bool durable)
{
	int r = store_commit(store, durable);

	if (r < 0)
		return store_breaks(r, store_problem(store));
	undurable = !durable;
	return 0;
}

int flush_some(void)
{
	int r;

	if (store_broken())
		return store_broken();
	store_enter();
	r = (r = put_all()) ? store_breaks(r, problem(r)) : commit(false);
	store_leave();
	return r;
}

int flush_all(bool durable)
{
	bool any;
	int r = 0;

	imfs_write_lock();
	if (!store || store_broken()) {
		imfs_write_unlock();
		return store_broken();
	}
	store_enter();
	any = any_marks();
	if (any && (r = put_all()))
		r = store_breaks(r, problem(r));
	imfs_write_unlock();
	if (!r && (any || (durable && undurable)))
		r = commit(durable);
	store_leave();
	return r;
}

static void *keep(void *unused)
{
	for (;;) {
		sleep(SECONDS);
		if (any_marks_now())
			flush_all(false);
	}
	return unused;
}

int flush_begin(void)
{
	pthread_t keeper;

	return pthread_create(&keeper, NULL, keep, NULL);
}
