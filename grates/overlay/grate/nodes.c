/* Nodes by their numbers: two names below that are one file are one node, and so is what the
 * state leads to by another name. */
#include "nodes.h"
#include "saved.h"

static struct imfs_under **buckets;
static size_t bucket_count, count;

static struct imfs_under **bucket_of(uint64_t ino)
{
	return &buckets[(ino * 0x9e3779b97f4a7c15u >> 20) & (bucket_count - 1)];
}

static int widen(void)
{
	size_t old_count = bucket_count;
	struct imfs_under **old = buckets, **wide = calloc(old_count ? old_count * 4 : 1024, sizeof *wide);

	if (!wide)
		return old ? 0 : -ENOMEM;
	bucket_count = old_count ? old_count * 4 : 1024;
	buckets = wide;
	for (size_t i = 0; i < old_count; i++)
		while (old[i]) {
			struct imfs_under *u = old[i], **at = bucket_of(u->node->ino);

			old[i] = u->same_hash;
			u->same_hash = *at;
			*at = u;
		}
	free(old);
	return 0;
}

static void insert(struct imfs_under *u)
{
	struct imfs_under **at = bucket_of(u->node->ino);

	u->same_hash = *at;
	*at = u;
}

static void take_out(struct imfs_under *u)
{
	struct imfs_under **at = bucket_of(u->node->ino);

	while (*at != u)
		at = &(*at)->same_hash;
	*at = u->same_hash;
}

struct imfs_node *node_by_ino(uint64_t ino)
{
	for (struct imfs_under *u = *bucket_of(ino); u; u = u->same_hash)
		if (u->node->ino == ino)
			return u->node;
	return NULL;
}

bool node_each(bool (*each)(struct imfs_node *n, void *to), void *to)
{
	for (size_t i = 0; i < bucket_count; i++)
		for (struct imfs_under *u = buckets[i]; u; u = u->same_hash)
			if (!each(u->node, to))
				return false;
	return true;
}

void node_renumber(struct imfs_node *n, uint64_t ino)
{
	take_out(n->under);
	n->ino = ino;
	insert(n->under);
}

int node_born(struct imfs_node *n)
{
	struct imfs_under *u;

	if (count >= bucket_count && widen())
		return -ENOMEM;
	if (!(u = calloc(1, sizeof *u)))
		return -ENOMEM;
	u->node = n;
	u->cut = INT64_MAX;
	u->fd = u->watch = -1;
	n->under = u;
	count++;
	insert(u);
	/* There is nothing below a new file. */
	u->xattrs_known = true;
	return 0;
}

/* Counted, but not refused: how long paths are below is up to others. */
void node_shows(struct imfs_node *n, char *origin)
{
	if (n->under->origin)
		fs.used -= strlen(n->under->origin) + 1;
	free(n->under->origin);
	if ((n->under->origin = origin))
		fs.used += strlen(origin) + 1;
}

void node_free(struct imfs_under *u)
{
	struct imfs_node *n = u->node;

	take_out(u);
	count--;
	free(u->stored);
	node_shows(n, NULL);
	free(u);
	n->under = NULL;
}

struct imfs_node *node_make(uint32_t mode, uint64_t ino, struct imfs_node *dir)
{
	static const struct imfs_cred nobody_yet;
	struct imfs_node *n = imfs_node_new(&fs, mode, &nobody_yet, NULL);

	if (!n)
		return NULL;
	if (S_ISDIR(mode) && imfs_dir_init(n, dir)) {
		imfs_node_settle(&fs, n);
		return NULL;
	}
	n->nlink = S_ISDIR(mode) ? 2 : 1;
	if (ino) {
		fs.next_ino--;
		node_renumber(n, ino);
	}
	return n;
}

static int take_xattrs(struct imfs_node *n, const uint8_t *bytes, uint32_t left)
{
	while (left) {
		size_t length = strnlen((const char *)bytes, left) + 1;
		uint32_t size;
		int r;

		if (length + sizeof size > left)
			return -EIO;
		memcpy(&size, bytes + length, sizeof size);
		if (size > left - length - sizeof size)
			return -EIO;
		if ((r = imfs_xattr_add(&fs, n, (const char *)bytes, bytes + length + sizeof size, size)))
			return r;
		bytes += length + sizeof size + size;
		left -= (uint32_t)(length + sizeof size + size);
	}
	return 0;
}

void node_from_row(struct imfs_node *n, const struct store_node *row)
{
	struct imfs_under *u = n->under;

	n->uid = row->uid;
	n->gid = row->gid;
	n->mode = row->mode;
	n->rdev = row->rdev;
	n->size = S_ISDIR(row->mode) ? 0 : row->size;
	n->nlink = row->nlink ? row->nlink : 1;
	u->row = u->first_row = true;
	u->stamp = row->stamp;
	u->origin_size = row->origin_size;
	u->stored_end = row->size;
	u->xattrs_known = true;
	n->unlisted = S_ISDIR(n->mode);
	n->lazy = S_ISREG(n->mode) && n->size;
	if (row->origin)
		node_shows(n, strdup(row->origin));
	if (S_ISLNK(n->mode) && (n->target = strdup(row->target ? row->target : "")))
		n->size = (int64_t)strlen(n->target);
	if (row->xattrs_size && take_xattrs(n, row->xattrs, row->xattrs_size))
		lind_log(
		    "cannot read all extended attributes of inode %llu from the state", (unsigned long long)row->ino);
	n->atime = row->atime;
	n->mtime = row->mtime;
	n->ctime = row->ctime;
	n->btime = row->btime;
}

struct imfs_node *node_of_row(uint64_t ino, struct imfs_node *dir)
{
	struct imfs_node *n = node_by_ino(ino);
	struct store_node row;

	/* A directory has one name only. */
	if (n && n->under->row)
		return S_ISDIR(n->mode) ? NULL : n;
	if (n || store_get(store, ino, &row) != 1)
		return NULL;
	if ((n = node_make(row.mode, ino, dir)))
		node_from_row(n, &row);
	return n;
}
