/* Contents: chunks of files that came from below, and may go again when there are too many. */
#include <unistd.h>
#include "cache.h"
#include "lower.h"
#include "saved.h"

#define STRAIGHT_LEAST 16384 /* bytes that are worth a call of their own: less is read into memory, to stay there */

uint64_t cache_limit = 512u << 20;

static struct imfs_under *cached, **last = &cached;

static void leave_cache(struct imfs_under *u)
{
	if (!u->at_cached)
		return;
	*u->at_cached = u->next_cached;
	*(u->next_cached ? &u->next_cached->at_cached : &last) = u->at_cached;
	u->at_cached = NULL;
}

static void enter_cache(struct imfs_under *u)
{
	if (u->at_cached)
		return;
	u->next_cached = NULL;
	u->at_cached = last;
	*last = u;
	last = &u->next_cached;
}

void cache_forget(struct imfs_under *u)
{
	leave_cache(u);
}

/* Clean chunks go, of those first that came first, until there is room for an eighth. */
void cache_make_room(void)
{
	struct imfs_under *u, *first = NULL;

	if (fs.contents <= cache_limit)
		return;
	while ((u = cached) && u != first && fs.contents > cache_limit - cache_limit / 8) {
		leave_cache(u);
		imfs_data_drop(&fs, u->node);
		if (!u->node->data.count)
			continue;
		enter_cache(u);
		first = first ? first : u;
	}
}

int cache_readable(struct imfs_node *n)
{
	struct imfs_under *u = n->under;
	int fd;

	if (!u->origin || !u->origin_size)
		return 0;
	return (fd = lower_file(u)) < 0 ? fd : 0;
}

void cache_stored(struct imfs_under *u, uint64_t index)
{
	if (index >= u->stored_count && !u->first_row) {
		uint64_t count = (index + 1) * 2 + 64;
		uint8_t *grown = realloc(u->stored, (size_t)(count + 7) / 8);

		if (!grown) {
			u->first_row = true;
			return;
		}
		memset(grown + (u->stored_count + 7) / 8, 0, (size_t)((count + 7) / 8 - (u->stored_count + 7) / 8));
		u->stored = grown;
		u->stored_count = count;
	}
	if (!u->first_row)
		u->stored[index / 8] |= (uint8_t)(1u << index % 8);
}

static bool may_be_stored(const struct imfs_under *u, uint64_t index)
{
	return u->first_row || (index < u->stored_count && u->stored[index / 8] & 1u << index % 8);
}

/* Whether a chunk is in the lower file as it is here. */
static bool is_below(const struct imfs_node *n, uint64_t index)
{
	if (may_be_stored(n->under, index))
		return false;
	return !imfs_data_there(n, (int64_t)(index * IMFS_CHUNK), 1);
}

size_t cache_straight(const struct imfs_node *n, int64_t off, size_t max, int *fd)
{
	const struct imfs_under *u = n->under;
	int64_t end = least(least(u->origin_size, n->size), off + (int64_t)max), at = off;

	if (u->fd < 0 || n->data.backing || u->first_row || off < 0 || end - off < STRAIGHT_LEAST)
		return 0;
	*fd = u->fd;
	while (at < end && is_below(n, (uint64_t)at / IMFS_CHUNK))
		at = least(end, (at / (int64_t)IMFS_CHUNK + 1) * (int64_t)IMFS_CHUNK);
	return at - off < STRAIGHT_LEAST ? 0 : (size_t)(at - off);
}

int cache_whole(struct imfs_node *n)
{
	struct imfs_under *u = n->under;

	if (u->row || u->at_dirty || !u->origin || u->origin_size != n->size || n->data.backing || lower_file(u) < 0)
		return -1;
	return fcntl(u->fd, F_DUPFD_CLOEXEC, 0);
}

static int read_lower(struct imfs_under *u, int64_t start, uint8_t *bytes, int64_t length)
{
	int64_t so_far = 0;
	ssize_t got = 1;
	int fd = lower_file(u);

	if (fd < 0)
		return fd;
	for (; so_far < length && got > 0; so_far += got)
		got = pread(fd, bytes + so_far, (size_t)(length - so_far), start + so_far);
	/* Bytes that somebody has cut off meanwhile are zeros. */
	if (!got)
		memset(bytes + so_far, 0, (size_t)(length - so_far));
	return got < 0 ? -errno : 0;
}

/* Blocks that the store has, but for those that were cut off since. */
static int read_store(struct imfs_under *u, uint64_t index, uint8_t *bytes, uint32_t room)
{
	static uint8_t chunk[STORE_CHUNK]; /* under the lock */
	int64_t start = (int64_t)(index * STORE_CHUNK), end = least(least(start + room, u->stored_end), u->cut);
	int mask;

	if (start >= end)
		return 0;
	store_enter();
	mask = store ? store_read(store, u->node->ino, index, chunk) : -EIO;
	store_leave();
	for (int i = 0; mask > 0 && i < (int)(STORE_CHUNK / STORE_BLOCK); i++) {
		int64_t at = i * (int64_t)STORE_BLOCK;

		if (mask & 1 << i && start + at < end)
			memcpy(bytes + at, chunk + at, (size_t)least(STORE_BLOCK, room - at));
	}
	return mask < 0 ? mask : 0;
}

int cache_fill(struct imfs_node *n, uint64_t index, uint8_t *bytes, uint32_t room)
{
	struct imfs_under *u = n->under;
	int64_t start = (int64_t)(index * IMFS_CHUNK), lower = least(u->origin_size - start, room);
	int r = 0;

	lower = u->origin && lower > 0 ? lower : 0;
	memset(bytes + lower, 0, (size_t)(room - lower));
	if (lower)
		r = read_lower(u, start, bytes, lower);
	if (!r && u->row && may_be_stored(u, index))
		r = read_store(u, index, bytes, room);
	if (!r && n->size - start < room)
		memset(bytes + (n->size - start), 0, (size_t)(room - (n->size - start)));
	if (!r)
		enter_cache(u);
	return r;
}

int cache_cut(struct imfs *filesystem, struct imfs_node *n, int64_t size)
{
	struct imfs_under *u = n->under;
	size_t run;

	if (u->row && n->lazy) {
		/* The block that is cut in two is written again: the bytes behind its end must not come back. */
		if (size % IMFS_BLOCK && !imfs_data_reserve(filesystem, n, size, 1, &run))
			return -ENOSPC;
		u->cut = least(u->cut, size);
	}
	u->origin_size = least(u->origin_size, size);
	return 0;
}

/* The first chunk from this one on that is in memory, or that the store may have. */
static uint64_t next_changed(const struct imfs_node *n, uint64_t index)
{
	const struct imfs_under *u = n->under;
	uint64_t next = UINT64_MAX, bit = index;
	int64_t stored = INT64_MAX;

	for (uint32_t i = 0; i < n->data.count && next == UINT64_MAX; i++)
		if (n->data.chunks[i].index >= index)
			next = n->data.chunks[i].index;
	while (bit < u->stored_count && !(u->stored[bit / 8] & 1u << bit % 8))
		bit++;
	if (bit < u->stored_count && bit < next)
		next = bit;
	if (u->first_row) {
		store_enter();
		stored = store ? store_next_chunk(store, n->ino, index) : INT64_MAX;
		store_leave();
	}
	/* Where the store does not say, what it may have is looked at. */
	return stored < 0 ? index : (uint64_t)stored < next ? (uint64_t)stored : next;
}

/* The same for a part of a file that is as below: `limit` if there is none. */
static int64_t seek_lower(struct imfs_under *u, int64_t off, int64_t limit, bool hole)
{
	int64_t end = u->origin ? least(u->origin_size, limit) : 0, r;
	int fd;

	if (off >= end)
		return hole ? off : limit;
	if ((fd = lower_file(u)) < 0)
		return hole ? end : off;
	if ((r = lseek(fd, off, hole ? SEEK_HOLE : SEEK_DATA)) < 0)
		r = errno == ENXIO ? (hole ? off : end) : hole ? end : off;
	return r < end ? r : hole ? end : limit;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, length - 1);
}

/* The same for a part of one chunk: a block of zeros is a hole. */
static int64_t seek_chunk(struct imfs_node *n, int64_t off, int64_t limit, bool hole)
{
	size_t run;
	int r = imfs_data_load(&fs, n, off);

	if (r)
		return r;
	while (off < limit) {
		int64_t end = least(limit, (off / (int64_t)IMFS_BLOCK + 1) * (int64_t)IMFS_BLOCK);
		const uint8_t *bytes = imfs_data_run(n, off, (size_t)(end - off), &run);

		if ((!bytes || is_zero(bytes, run)) == hole)
			return off;
		off += (int64_t)run;
	}
	return limit;
}

int64_t cache_seek(struct imfs_node *n, int64_t off, bool hole)
{
	while (off < n->size) {
		uint64_t index = (uint64_t)off / IMFS_CHUNK, changed = next_changed(n, index),
			 next = changed > index ? changed : index + 1;
		int64_t limit = next > (uint64_t)n->size / IMFS_CHUNK ? n->size : (int64_t)(next * IMFS_CHUNK);
		int64_t r = changed > index ? seek_lower(n->under, off, limit, hole) : seek_chunk(n, off, limit, hole);

		if (r < limit)
			return r;
		off = limit;
	}
	return hole ? n->size : -ENXIO;
}

/* The blocks of 512 bytes that this run has written, at most: the store knows chunks. */
static uint64_t written_blocks(const struct imfs_node *n)
{
	const struct imfs_under *u = n->under;
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < n->data.count; i++) {
		uint64_t index = n->data.chunks[i].index;

		if (index >= u->stored_count || !(u->stored[index / 8] & 1u << index % 8))
			blocks += (uint64_t)__builtin_popcount(n->data.chunks[i].dirty) * (IMFS_BLOCK / 512);
	}
	for (uint64_t i = 0; i < u->stored_count; i++)
		blocks += u->stored[i / 8] & 1u << i % 8 ? IMFS_CHUNK / 512 : 0;
	return blocks;
}

/* A file with holes keeps them. Of what an earlier run has written only the size is known. */
uint64_t cache_blocks(const struct imfs_node *n)
{
	const struct imfs_under *u = n->under;
	uint64_t whole = (uint64_t)(n->size + IMFS_BLOCK - 1) / IMFS_BLOCK * (IMFS_BLOCK / 512);

	if (!n->lazy)
		return u->row || u->at_dirty || !u->origin ? n->data.allocated / 512 : u->blocks;
	if (!u->row && !u->at_dirty)
		return u->blocks;
	return u->first_row ? whole : least((int64_t)whole, (int64_t)(u->blocks + written_blocks(n)));
}
