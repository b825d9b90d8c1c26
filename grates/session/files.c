/* Requests for files, one after another. */
#include "files.h"
#include <fcntl.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATHS (2 * PATH_MAX)

static char waiting[2 * PIECE];
static size_t waits;
static char failed[PATH_MAX];
static uint32_t piece_left; /* of the piece that is being read */
static bool pieces_ended;
int64_t result;

static void put(const void *bytes, size_t count)
{
	for (const char *at = bytes; count;) {
		ssize_t n = write(CHANNEL, at, count);

		if (n < 0 && errno == EINTR)
			continue;
		/* Without lind-boot there is nothing to do. */
		if (n <= 0)
			_exit(0);
		at += n;
		count -= (size_t)n;
	}
}

static void take(void *to, size_t count)
{
	for (char *at = to; count;) {
		ssize_t n = read(CHANNEL, at, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		at += n;
		count -= (size_t)n;
	}
}

void tell_now(void)
{
	put(waiting, waits);
	waits = 0;
}

void tell(enum kind kind, int64_t value, const void *bytes, size_t count)
{
	const struct report report = { kind, (uint32_t)count, value };

	if (waits + sizeof report + count > sizeof waiting)
		tell_now();
	memcpy(waiting + waits, &report, sizeof report);
	if (count)
		memcpy(waiting + waits + sizeof report, bytes, count);
	waits += sizeof report + count;
	if (kind == DATA || kind >= BEGUN)
		tell_now();
}

void tell_entry(const struct stat *st, int error, const char *name, const char *target)
{
	const struct entry entry = {
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.links = (uint32_t)st->st_nlink,
		.error = (uint32_t)-error,
		.name = (uint32_t)strlen(name),
		.target = (uint32_t)strlen(target),
	};
	char bytes[sizeof entry + 2 * PATH_MAX];

	if (entry.name > PATH_MAX || entry.target > PATH_MAX)
		return;
	memcpy(bytes, &entry, sizeof entry);
	memcpy(bytes + sizeof entry, name, entry.name);
	memcpy(bytes + sizeof entry + entry.name, target, entry.target);
	tell(ENTRY, 0, bytes, sizeof entry + entry.name + entry.target);
}

void tell_skipped(const char *name)
{
	tell(SKIPPED, 0, name, strlen(name));
}

int fail_at(int error, const char *path)
{
	if (!*failed)
		snprintf(failed, sizeof failed, "%s", path);
	return error;
}

int64_t next_bytes(void *to, size_t most)
{
	if (pieces_ended)
		return 0;
	if (!piece_left) {
		take(&piece_left, sizeof piece_left);
		if (piece_left == LAST_PIECE || piece_left == GIVEN_UP) {
			pieces_ended = true;
			return piece_left == GIVEN_UP ? -ECANCELED : 0;
		}
	}
	if (most > piece_left)
		most = piece_left;
	take(to, most);
	piece_left -= (uint32_t)most;
	return (int64_t)most;
}

void pass_over(void)
{
	static char piece[PIECE];

	while (!pieces_ended)
		next_bytes(piece, sizeof piece);
	piece_left = 0;
}

bool is_interrupted(void)
{
	struct pollfd channel = { .fd = CHANNEL, .events = POLLIN };

	return poll(&channel, 1, 0) > 0;
}

static int act(const struct ask *ask, const char *path, const char *other)
{
	switch ((enum op)ask->op) {
	case STAT:
		return file_stat(ask, path);
	case LIST:
		return file_list(ask, path);
	case READ:
		return file_read(ask, path);
	case WRITE:
	case APPEND:
		return file_write(ask, path);
	case COPY:
		return file_copy(ask, path, other);
	case REMOVE:
		return file_remove(ask, path);
	case MKDIR:
		return file_mkdir(ask, path);
	case WATCH:
		return file_watch(ask, path);
	case PACK:
		return file_pack(ask, path);
	case UNPACK:
		return file_unpack(ask, path);
	case RENAME:
		if (ask->flags & CREATE)
			return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE) ? -errno : 0;
		return rename(path, other) ? -errno : 0;
	case LINK:
		return symlink(other, path) ? -errno : 0;
	case OPS:
		break;
	}
	return -ENOSYS;
}

static bool has_pieces(const struct ask *ask)
{
	return ask->op == WRITE || ask->op == APPEND || ask->op == UNPACK;
}

int serve_files(void)
{
	static char paths[PATHS + 2];

	for (;;) {
		struct ask ask;
		int r;

		take(&ask, sizeof ask);
		if (ask.bytes > PATHS)
			return 1;
		take(paths, ask.bytes);
		memset(paths + ask.bytes, 0, 2);
		*failed = 0;
		piece_left = 0;
		pieces_ended = !has_pieces(&ask);
		result = 0;
		r = act(&ask, paths, paths + strlen(paths) + 1);
		pass_over();
		if (r)
			fail_at(r, paths);
		tell(DONE, r ? r : result, failed, r ? strlen(failed) : 0);
	}
}
