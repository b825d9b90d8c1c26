#include "data.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_MOST  16  /* a cage may have few descriptors, and the lower directory needs some */
#define LIMBO_MOST 8192  /* slots: 32 MiB */
#define BUCKETS    1024
#define HOME_MOST \
	(1ull \
	    << 28) /* 1 TiB: behind it a block has no slot of its own number, since few file systems have files as large as they may be here */

struct data_file {
	struct data_file *same_bucket, *next_active;
	uint64_t ino;
	int fd; /* -1: not open now */
	bool known; /* the facts about slots below are valid */
	uint64_t used_at; /* when its descriptor was, to find the one that nobody needs */
	bool active; /* it has been changed since the last commit that the disk has */
	bool unsynced;
	struct slots used; /* by rows, or in limbo */
	struct slots fresh; /* written since the last commit, so no commit has them */
	struct slots limbo; /* of these, no row names them now, but the disk may have rows that do */
	uint64_t floor; /* behind all slots that blocks prefer */
	uint64_t next; /* from floor on, all before it are used */
};

struct data {
	int folder;
	bool folder_unsynced, garbage;
	struct data_file *buckets[BUCKETS], *active, *open[OPEN_MOST];
	uint64_t clock;
	uint64_t in_limbo; /* slots, in all files */
};

struct data *data_new(int folder)
{
	struct data *data = calloc(1, sizeof *data);

	if (data)
		data->folder = folder;
	return data;
}

static void close_file(struct data *data, struct data_file *file)
{
	for (unsigned i = 0; i < OPEN_MOST; i++)
		if (data->open[i] == file)
			data->open[i] = NULL;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

static struct data_file **place_of(struct data *data, uint64_t ino)
{
	struct data_file **at = &data->buckets[(ino * 0x9e3779b97f4a7c15u >> 32) % BUCKETS];

	while (*at && (*at)->ino != ino)
		at = &(*at)->same_bucket;
	return at;
}

static struct data_file *found_or_made(struct data *data, uint64_t ino)
{
	struct data_file **at = place_of(data, ino);

	if (!*at && (*at = calloc(1, sizeof **at))) {
		(*at)->ino = ino;
		(*at)->fd = -1;
	}
	return *at;
}

struct data_file *data_file(struct data *data, uint64_t ino, bool *is_new)
{
	struct data_file *file = found_or_made(data, ino);

	if (!file)
		return NULL;
	*is_new = !file->known;
	file->known = true;
	return file;
}

static void free_file(struct data *data, struct data_file *file)
{
	close_file(data, file);
	slots_clear(&file->used);
	slots_clear(&file->fresh);
	slots_clear(&file->limbo);
	free(file);
}

void data_forget(struct data *data, struct data_file *file)
{
	struct data_file **active = &data->active;

	while (*active && *active != file)
		active = &(*active)->next_active;
	if (*active)
		*active = file->next_active;
	*place_of(data, file->ino) = file->same_bucket;
	free_file(data, file);
}

void data_free(struct data *data)
{
	for (unsigned i = 0; data && i < BUCKETS; i++)
		for (struct data_file *file = data->buckets[i], *next; file; file = next) {
			next = file->same_bucket;
			free_file(data, file);
		}
	if (data)
		close(data->folder);
	free(data);
}

/* Closes the one that nobody has needed for the longest time; false: none is open. */
static bool close_oldest(struct data *data)
{
	struct data_file *oldest = NULL;

	for (unsigned i = 0; i < OPEN_MOST; i++)
		if (data->open[i] && (!oldest || data->open[i]->used_at < oldest->used_at))
			oldest = data->open[i];
	if (oldest)
		close_file(data, oldest);
	return oldest;
}

static void name_of(uint64_t ino, char name[24])
{
	snprintf(name, 24, "%llu", (unsigned long long)ino);
}

/* A link is not followed, and a fifo not waited for: others may have put one there. */
static int open_file(struct data *data, uint64_t ino, int flags)
{
	char name[24];
	struct stat st;
	int fd;

	name_of(ino, name);
	do
		fd = openat(data->folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);
	while (fd < 0 && errno == EMFILE && close_oldest(data));
	if (fd < 0)
		return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EMLINK : -errno;
	/* Written by another name it would be another's file that changes. */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return fd;
	close(fd);
	return -EMLINK;
}

/* Its descriptor, or an error; makes the file if there is none and `make` says so. */
static int descriptor(struct data *data, struct data_file *file, bool make)
{
	unsigned i = 0;

	file->used_at = ++data->clock;
	if (file->fd >= 0)
		return file->fd;
	file->fd = open_file(data, file->ino, 0);
	if (file->fd == -ENOENT && make) {
		file->fd = open_file(data, file->ino, O_CREAT);
		data->folder_unsynced = true;
	}
	if (file->fd < 0) {
		int r = file->fd;

		file->fd = -1;
		return r;
	}
	while (i < OPEN_MOST && data->open[i])
		i++;
	if (i == OPEN_MOST) {
		close_oldest(data);
		for (i = 0; data->open[i]; i++)
			;
	}
	data->open[i] = file;
	return file->fd;
}

static void mark(struct data *data, struct data_file *file)
{
	if (file->active)
		return;
	file->active = true;
	file->next_active = data->active;
	data->active = file;
}

/* Blocks prefer the slots before it. */
static void raise_floor(struct data_file *file, uint64_t block)
{
	if (block >= HOME_MOST || block < file->floor)
		return;
	file->floor = block + 1;
	if (file->next < file->floor)
		file->next = file->floor;
}

int data_holds(struct data_file *file, uint64_t block, uint64_t slot)
{
	raise_floor(file, block);
	return slots_add(&file->used, slot);
}

int data_read(struct data *data, uint64_t ino, uint64_t slot, unsigned count, uint8_t *to)
{
	struct data_file *file = found_or_made(data, ino);
	size_t left = (size_t)count * STORE_BLOCK;
	off_t at = (off_t)(slot * STORE_BLOCK);
	int fd = file ? descriptor(data, file, false) : -ENOMEM;

	while (fd >= 0 && left) {
		ssize_t n = pread(fd, to, left, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENODATA;
		to += n;
		at += n;
		left -= (size_t)n;
	}
	return fd < 0 ? fd : 0;
}

int data_write(struct data *data, struct data_file *file, uint64_t slot, unsigned count, const uint8_t *from)
{
	size_t left = (size_t)count * STORE_BLOCK;
	off_t at = (off_t)(slot * STORE_BLOCK);
	int fd = descriptor(data, file, true);

	if (fd < 0)
		return fd;
	mark(data, file);
	file->unsynced = true;
	while (left) {
		ssize_t n = pwrite(fd, from, left, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		from += n;
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

int data_take(struct data *data, struct data_file *file, uint64_t block, uint64_t *slot)
{
	uint64_t old = *slot;
	int r;

	if (old != SLOT_NONE && slots_has(&file->fresh, old))
		return 0;
	raise_floor(file, block);
	if (block < HOME_MOST && !slots_has(&file->used, block))
		*slot = block;
	else
		*slot = file->next = slots_next(&file->used, file->next, false);
	if (*slot >= SLOT_MOST)
		return -ENOSPC;
	mark(data, file);
	if ((r = slots_add(&file->used, *slot)) || (r = slots_add(&file->fresh, *slot)))
		return r;
	return old == SLOT_NONE ? 0 : data_give(data, file, old);
}

int data_give(struct data *data, struct data_file *file, uint64_t slot)
{
	mark(data, file);
	slots_remove(&file->fresh, slot);
	data->in_limbo++;
	return slots_add(&file->limbo, slot);
}

int data_sync(struct data *data)
{
	for (struct data_file *file = data->active; file; file = file->next_active) {
		int fd = file->unsynced ? descriptor(data, file, false) : 0;

		if (fd < 0 || (file->unsynced && fdatasync(fd)))
			return fd < 0 ? fd : -errno;
		file->unsynced = false;
	}
	if (data->folder_unsynced && fsync(data->folder))
		return -errno;
	data->folder_unsynced = false;
	return 0;
}

void data_committed(struct data *data)
{
	for (struct data_file *file = data->active; file; file = file->next_active)
		slots_clear(&file->fresh);
}

/* Where a file system cannot give back a part of a file the bytes stay, and are overwritten some
 * time. */
static void punch(int fd, uint64_t from, uint64_t to)
{
	(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(from * STORE_BLOCK),
	    (off_t)((to - from) * STORE_BLOCK));
}

static void remove_file(struct data *data, struct data_file *file)
{
	char name[24];

	name_of(file->ino, name);
	unlinkat(data->folder, name, 0);
	data_forget(data, file);
}

static void leave_limbo(struct data *data, struct data_file *file)
{
	int fd;

	for (uint64_t slot = 0; (slot = slots_next(&file->limbo, slot, true)) < SLOT_MOST; slot++) {
		slots_remove(&file->used, slot);
		if (slot >= file->floor && slot < file->next)
			file->next = slot;
	}
	if (slots_next(&file->used, 0, true) == SLOT_MOST) {
		remove_file(data, file);
		return;
	}
	if (slots_next(&file->limbo, 0, true) < SLOT_MOST && (fd = descriptor(data, file, false)) >= 0)
		for (uint64_t from = 0, to; (from = slots_next(&file->limbo, from, true)) < SLOT_MOST; from = to)
			punch(fd, from, to = slots_next(&file->limbo, from, false));
	slots_clear(&file->limbo);
}

void data_durable(struct data *data)
{
	struct data_file *file;

	data->in_limbo = 0;
	while ((file = data->active)) {
		data->active = file->next_active;
		file->active = false;
		leave_limbo(data, file);
	}
}

void data_undone(struct data *data)
{
	for (struct data_file *file = data->active; file; file = file->next_active) {
		data->garbage = true;
		slots_clear(&file->fresh);
		slots_clear(&file->limbo);
	}
	data->in_limbo = 0;
}

bool data_waits(const struct data *data)
{
	return data->in_limbo > LIMBO_MOST;
}

bool data_has_garbage(const struct data *data)
{
	return data->garbage;
}

/* 0: no data file is called so. */
static uint64_t number_of(const char *name)
{
	size_t length = strspn(name, "0123456789");
	uint64_t ino;

	if (!length || length > 20 || name[length] || *name == '0')
		return 0;
	errno = 0;
	ino = strtoull(name, NULL, 10);
	return errno ? 0 : ino;
}

int data_list(struct data *data, uint64_t **inos, size_t *count)
{
	int copy = fcntl(data->folder, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	*inos = NULL;
	*count = 0;
	if (!dir) {
		int r = -errno;

		if (copy >= 0)
			close(copy);
		return r;
	}
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		uint64_t ino = number_of(entry->d_name);
		/* A power of two of them: there is room for the next. */
		uint64_t *more =
		    ino && !(*count & (*count - 1)) ? realloc(*inos, 2 * (*count + 1) * sizeof *more) : *inos;

		if (ino && !more) {
			closedir(dir);
			return -ENOMEM;
		}
		if (ino)
			(*inos = more)[(*count)++] = ino;
	}
	return closedir(dir) ? -errno : 0;
}

int data_keep_only(struct data *data, struct data_file *file)
{
	uint64_t from = 0, to;
	struct stat st;
	int fd;

	if (slots_next(&file->used, 0, true) == SLOT_MOST) {
		remove_file(data, file);
		return 0;
	}
	if ((fd = descriptor(data, file, false)) < 0 || fstat(fd, &st))
		return fd < 0 ? fd : -errno;
	while ((from = slots_next(&file->used, from, false)) * STORE_BLOCK < (uint64_t)st.st_size) {
		if ((to = slots_next(&file->used, from, true)) == SLOT_MOST)
			return ftruncate(fd, (off_t)(from * STORE_BLOCK)) ? -errno : 0;
		punch(fd, from, to);
		from = to;
	}
	return 0;
}
