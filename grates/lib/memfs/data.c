/*
 * The contents of regular files: chunks of 64 KiB, so that a read is one or few copies, and holes.
 * A chunk's memory grows in powers of two, so that small files stay small. Files that clients have
 * mapped are in one piece, which the grate makes of memory that they share (on_map.c).
 */
#include <stdlib.h>
#include "imfs_core.h"

#define SMALLEST   256u
#define MOST_ZEROS (1ll << 30) /* that are written where data are below */

/* The first chunk with this index or a later one. */
static uint32_t position(const struct imfs_data *d, uint64_t index)
{
	uint32_t low = 0, high = d->count;

	/* Without holes, chunk i is at place i. */
	if (index < d->count && d->chunks[index].index == index)
		return (uint32_t)index;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (d->chunks[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint8_t *imfs_data_run_slow(const struct imfs_node *n, int64_t off, size_t max, size_t *run)
{
	const struct imfs_data *d = &n->data;
	uint64_t index = (uint64_t)off / IMFS_CHUNK;
	uint32_t in = (uint32_t)((uint64_t)off % IMFS_CHUNK), i = position(d, index);
	uint32_t left = IMFS_CHUNK - in;

	if (i < d->count && d->chunks[i].index == index && in < d->chunks[i].room) {
		left = d->chunks[i].room - in;
		*run = left < max ? left : max;
		return d->chunks[i].data + in;
	}
	*run = left < max ? left : max;
	return NULL;
}

static struct imfs_chunk *insert(struct imfs_data *d, uint32_t at, uint64_t index)
{
	if (d->count == d->room) {
		uint32_t room = d->room ? d->room * 2 : 1;
		struct imfs_chunk *grown = realloc(d->chunks, room * sizeof *grown);

		if (!grown)
			return NULL;
		d->chunks = grown;
		d->room = room;
	}
	memmove(d->chunks + at + 1, d->chunks + at, (d->count - at) * sizeof *d->chunks);
	d->chunks[at] = (struct imfs_chunk){ .index = index };
	d->count++;
	return &d->chunks[at];
}

static int grow(struct imfs *fs, struct imfs_data *d, struct imfs_chunk *c, uint32_t need)
{
	uint32_t room = c->room ? c->room : SMALLEST;
	uint8_t *data;

	while (room < need)
		room *= 2;
	if (room == c->room)
		return 0;
	if (imfs_charge(fs, room - c->room))
		return -ENOSPC;
	if (!(data = realloc(c->data, room))) {
		fs->used -= room - c->room;
		return -ENOSPC;
	}
	memset(data + c->room, 0, room - c->room);
	d->allocated += room - c->room;
	fs->contents += room - c->room;
	c->data = data;
	c->room = room;
	return 0;
}

static int no_backing(struct imfs_backing *backing, uint64_t size)
{
	(void)backing;
	(void)size;
	return -ENODEV;
}
int (*imfs_backing_fit)(struct imfs_backing *, uint64_t) = no_backing;

static void no_end(struct imfs_backing *backing)
{
	(void)backing;
}
void (*imfs_backing_end)(struct imfs_backing *) = no_end;

static int no_copy(struct imfs_backing *backing, int fd, uint64_t size)
{
	(void)backing;
	(void)fd;
	(void)size;
	return -ENODEV;
}
int (*imfs_backing_copy)(struct imfs_backing *, int, uint64_t) = no_copy;

/* Makes the backing of a file so long, and the chunks its parts. */
static int fit(struct imfs *fs, struct imfs_data *d, uint64_t size)
{
	uint64_t count = (size + IMFS_CHUNK - 1) / IMFS_CHUNK,
		 more = count > d->count ? (count - d->count) * IMFS_CHUNK : 0;
	int r;

	if (count > UINT32_MAX / sizeof *d->chunks)
		return -EFBIG;
	if (count > d->room) {
		struct imfs_chunk *grown = realloc(d->chunks, (size_t)count * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		d->chunks = grown;
		d->room = (uint32_t)count;
	}
	if (imfs_charge(fs, more))
		return -ENOSPC;
	if ((r = imfs_backing_fit(d->backing, size))) {
		fs->used -= more;
		return r;
	}
	if (count < d->count)
		fs->used -= (d->count - count) * IMFS_CHUNK;
	d->count = (uint32_t)count;
	d->allocated = count * IMFS_CHUNK;
	for (uint32_t i = 0; i < d->count; i++)
		d->chunks[i] = (struct imfs_chunk){
			.index = i, .data = d->backing->base + (size_t)i * IMFS_CHUNK, .room = IMFS_CHUNK
		};
	return 0;
}

static void release(struct imfs *fs, struct imfs_data *d, uint32_t first, uint32_t last);

/* With a filesystem below: what is not overwritten of a chunk must be there, and that may be any
 * of it if the client's memory faults. */
static int prepare(struct imfs *fs, struct imfs_node *n, int64_t off)
{
	int r = imfs_below->room(fs);

	return !r && n->lazy ? imfs_data_load(fs, n, off) : r;
}

/* A place in a chunk that is about to be written to. */
static uint8_t *wrote(struct imfs_node *n, struct imfs_chunk *c, uint32_t in, uint32_t take)
{
	uint32_t first = in / IMFS_BLOCK, count = (in + take - 1) / IMFS_BLOCK - first + 1;

	if (n->under)
		imfs_below->wrote(n, c, (uint16_t)(((1u << count) - 1) << first));
	return c->data + in;
}

/* A place to write at `off`, of `*run` bytes. NULL: no space. */
uint8_t *imfs_data_reserve(struct imfs *fs, struct imfs_node *n, int64_t off, size_t want, size_t *run)
{
	struct imfs_data *d = &n->data;
	uint64_t index = (uint64_t)off / IMFS_CHUNK;
	uint32_t in = (uint32_t)((uint64_t)off % IMFS_CHUNK), i;
	uint32_t left = IMFS_CHUNK - in, take = want < left ? (uint32_t)want : left;
	struct imfs_chunk *c;

	*run = take;
	if (n->under && !d->backing && prepare(fs, n, off))
		return NULL;
	i = position(d, index);
	if (d->backing) {
		if ((uint64_t)off + take > d->backing->size && fit(fs, d, (uint64_t)off + take))
			return NULL;
		return d->backing->base + off;
	}
	if (i < d->count && d->chunks[i].index == index) {
		c = &d->chunks[i];
		if (in + take <= c->room)
			return wrote(n, c, in, take);
	} else if (!(c = insert(d, i, index)))
		return NULL;
	if (grow(fs, d, c, in + take)) {
		if (!c->room) {
			memmove(c, c + 1, (d->count - i - 1) * sizeof *c);
			d->count--;
		}
		return NULL;
	}
	return wrote(n, c, in, take);
}

int imfs_data_load(struct imfs *fs, struct imfs_node *n, int64_t off)
{
	struct imfs_data *d = &n->data;
	uint64_t index = (uint64_t)off / IMFS_CHUNK;
	int64_t left = n->size - (int64_t)(index * IMFS_CHUNK);
	uint32_t i = position(d, index);
	struct imfs_chunk *c;
	int r;

	if (d->backing || left <= 0 || (i < d->count && d->chunks[i].index == index))
		return 0;
	/* Data that cannot be written any more can still be read. */
	(void)imfs_below->room(fs);
	i = position(d, index);
	if (!(c = insert(d, i, index)))
		return -ENOMEM;
	if (!(r = grow(fs, d, c, left < (int64_t)IMFS_CHUNK ? (uint32_t)left : IMFS_CHUNK)) &&
	    !(r = imfs_below->fill(n, index, c->data, c->room)))
		return 0;
	release(fs, d, i, i + 1);
	return r;
}

bool imfs_data_there(const struct imfs_node *n, int64_t off, uint64_t length)
{
	const struct imfs_data *d = &n->data;
	int64_t end;

	if (d->backing || off < 0 || off >= n->size || !length)
		return true;
	end = length < (uint64_t)(n->size - off) ? off + (int64_t)length : n->size;
	for (uint64_t index = (uint64_t)off / IMFS_CHUNK; index * IMFS_CHUNK < (uint64_t)end; index++) {
		uint32_t i = position(d, index);

		if (i == d->count || d->chunks[i].index != index)
			return false;
	}
	return true;
}

static int write_zeros(struct imfs *fs, struct imfs_node *n, int64_t off, int64_t end)
{
	size_t run;

	for (; off < end; off += (int64_t)run) {
		uint8_t *to = imfs_data_reserve(
		    fs, n, off, end - off < (int64_t)IMFS_CHUNK ? (size_t)(end - off) : IMFS_CHUNK, &run);

		if (!to)
			return -ENOSPC;
		memset(to, 0, run);
	}
	return 0;
}

/* Where there are data only: what is a hole below stays one. */
int imfs_data_zero(struct imfs *fs, struct imfs_node *n, int64_t off, int64_t length)
{
	int64_t end = off + length, hole, most = MOST_ZEROS;
	int r = 0;

	if (n->data.backing)
		return write_zeros(fs, n, off, end);
	while (!r && (off = imfs_data_seek(n, off, false)) >= 0 && off < end) {
		if ((hole = imfs_data_seek(n, off, true)) < 0)
			return (int)hole;
		hole = hole < end ? hole : end;
		if ((most -= hole - off) < 0)
			return -EOPNOTSUPP;
		r = write_zeros(fs, n, off, hole);
		off = hole;
	}
	return r ? r : off < 0 && off != -ENXIO ? (int)off : 0;
}

void imfs_data_drop(struct imfs *fs, struct imfs_node *n)
{
	struct imfs_data *d = &n->data;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->count && !d->backing; i++) {
		if (d->chunks[i].dirty) {
			d->chunks[kept++] = d->chunks[i];
			continue;
		}
		fs->used -= d->chunks[i].room;
		fs->contents -= d->chunks[i].room;
		d->allocated -= d->chunks[i].room;
		free(d->chunks[i].data);
	}
	d->count = d->backing ? d->count : kept;
}

static void release(struct imfs *fs, struct imfs_data *d, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i < last; i++) {
		fs->used -= d->chunks[i].room;
		fs->contents -= d->chunks[i].room;
		d->allocated -= d->chunks[i].room;
		free(d->chunks[i].data);
	}
	memmove(d->chunks + first, d->chunks + last, (d->count - last) * sizeof *d->chunks);
	d->count -= last - first;
}

/* Zeroes [from, to) of one chunk, as far as it has memory. */
static void zero(struct imfs_data *d, uint64_t index, uint32_t from, uint32_t to)
{
	uint32_t i = position(d, index);
	struct imfs_chunk *c;

	if (i == d->count || d->chunks[i].index != index)
		return;
	c = &d->chunks[i];
	if (to > c->room)
		to = c->room;
	if (from < to)
		memset(c->data + from, 0, to - from);
}

void imfs_data_punch(struct imfs *fs, struct imfs_node *n, int64_t off, int64_t length)
{
	struct imfs_data *d = &n->data;
	uint64_t start = (uint64_t)off, end = start + (uint64_t)length;
	uint64_t first = (start + IMFS_CHUNK - 1) / IMFS_CHUNK, last = end / IMFS_CHUNK;
	uint32_t in = (uint32_t)(start % IMFS_CHUNK), out = (uint32_t)(end % IMFS_CHUNK);

	if (d->backing) {
		end = end < d->backing->size ? end : d->backing->size;
		if (start < end)
			memset(d->backing->base + start, 0, (size_t)(end - start));
		return;
	}
	if (start / IMFS_CHUNK == last) {
		zero(d, last, in, out);
		return;
	}
	if (in)
		zero(d, start / IMFS_CHUNK, in, IMFS_CHUNK);
	if (out)
		zero(d, last, 0, out);
	if (d->count)
		release(fs, d, position(d, first), position(d, last));
}

int imfs_data_resize(struct imfs *fs, struct imfs_node *n, int64_t size)
{
	int r = n->under && size < n->size ? imfs_below->cut(fs, n, size) : 0;

	if (!r && n->data.backing)
		r = fit(fs, &n->data, (uint64_t)size);
	if (r)
		return r;
	/* Everything behind, with what fallocate put beyond the end. */
	if (!n->data.backing && size <= n->size)
		imfs_data_punch(fs, n, size, INT64_MAX - size);
	n->size = size;
	return 0;
}

static void drop_chunks(struct imfs *fs, struct imfs_data *d)
{
	if (d->count)
		release(fs, d, 0, d->count);
	free(d->chunks);
}

/* Reads the parts of a lazy file that `old` lacks. */
static int fill_backing(struct imfs_node *n, const struct imfs_data *old)
{
	uint64_t size = (uint64_t)n->size;
	int r = 0;

	for (uint64_t start = 0; start < size && !r; start += IMFS_CHUNK) {
		uint32_t i = position(old, start / IMFS_CHUNK);

		if (i == old->count || old->chunks[i].index != start / IMFS_CHUNK)
			r = imfs_below->fill(n, start / IMFS_CHUNK, n->data.backing->base + start,
			    size - start < IMFS_CHUNK ? (uint32_t)(size - start) : IMFS_CHUNK);
	}
	return r;
}

int imfs_data_back(struct imfs *fs, struct imfs_node *n)
{
	struct imfs_data old = n->data;
	int r, whole;

	if (old.backing)
		return 0;
	whole = n->lazy ? imfs_below->whole(n) : -1;
	n->data = (struct imfs_data){ .backing = calloc(1, sizeof *n->data.backing) };
	if (n->data.backing) {
		n->data.backing->fd = -1;
		/* The same bytes are not counted twice. */
		fs->used -= old.allocated;
		r = fit(fs, &n->data, (uint64_t)n->size);
		fs->used += old.allocated;
		if (!r && n->lazy &&
		    (r = whole >= 0 ? imfs_backing_copy(n->data.backing, whole, (uint64_t)n->size)
				    : fill_backing(n, &old)))
			fs->used -= n->data.allocated;
		if (r)
			imfs_backing_end(n->data.backing);
	} else
		r = -ENOMEM;
	if (r) {
		free(n->data.chunks);
		free(n->data.backing);
		n->data = old;
		return r;
	}
	for (uint32_t i = 0; i < old.count && whole < 0; i++) {
		uint64_t start = old.chunks[i].index * IMFS_CHUNK,
			 left = start < (uint64_t)n->size ? (uint64_t)n->size - start : 0;

		memcpy(n->data.backing->base + start, old.chunks[i].data,
		    left < old.chunks[i].room ? (size_t)left : old.chunks[i].room);
	}
	drop_chunks(fs, &old);
	return 0;
}

void imfs_data_free(struct imfs *fs, struct imfs_node *n)
{
	struct imfs_data *d = &n->data;

	if (!d->backing) {
		drop_chunks(fs, d);
		return;
	}
	imfs_backing_end(d->backing);
	fs->used -= d->allocated;
	free(d->backing);
	free(d->chunks);
}

int64_t imfs_data_seek(struct imfs_node *n, int64_t off, bool hole)
{
	const struct imfs_data *d = &n->data;
	uint32_t i;

	if (off < 0 || off >= n->size)
		return -ENXIO;
	if (n->lazy && !d->backing)
		return imfs_below->seek(n, off, hole);
	i = position(d, (uint64_t)off / IMFS_CHUNK);
	if (!hole) {
		int64_t start;

		if (i == d->count)
			return -ENXIO;
		start = (int64_t)(d->chunks[i].index * IMFS_CHUNK);
		return start > off ? (start < n->size ? start : -ENXIO) : off;
	}
	while (i < d->count && d->chunks[i].index == (uint64_t)off / IMFS_CHUNK) {
		off = (int64_t)((d->chunks[i].index + 1) * IMFS_CHUNK);
		i++;
	}
	return off < n->size ? off : n->size;
}
