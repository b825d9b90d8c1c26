/* A tar of a file or of what is in a directory. Links are packed as links. Names and sizes that a
 * head has no room for stand in a head of type x before it. */
#include "files.h"
#include "tar.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char out[PIECE], name[PATH_MAX];
static size_t filled;
static int64_t left; /* bytes that the client still takes */

/* -EFBIG where there would be more than the client takes. */
static int put(const void *bytes, size_t count)
{
	left -= (int64_t)count;
	if (left < 0)
		return -EFBIG;
	for (const char *at = bytes; count;) {
		size_t part = count < sizeof out - filled ? count : sizeof out - filled;

		memcpy(out + filled, at, part);
		filled += part;
		at += part;
		count -= part;
		if (filled == sizeof out) {
			tell(DATA, 0, out, filled);
			filled = 0;
			if (is_interrupted())
				return -ECANCELED;
		}
	}
	return 0;
}

static int put_zeros(uint64_t count)
{
	static const char zeros[4096];
	int r = 0;

	for (; !r && count; count -= count < sizeof zeros ? count : sizeof zeros)
		r = put(zeros, count < sizeof zeros ? (size_t)count : sizeof zeros);
	return r;
}

static int fill_block(uint64_t size)
{
	return put_zeros((BLOCK - size % BLOCK) % BLOCK);
}

static void octal(char *to, size_t room, uint64_t number)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%0*llo", (int)room - 1, (unsigned long long)number);
	memcpy(to, digits, room);
}

static int put_head(char type, const char *path, const char *target, uint64_t size, const struct stat *st)
{
	struct head head = { .magic = "ustar", .type = type };
	int64_t mtime = st->st_mtim.tv_sec > 0 ? st->st_mtim.tv_sec : 0;

	head.magic[6] = head.magic[7] = '0';
	memcpy(head.name, path, strnlen(path, sizeof head.name));
	memcpy(head.target, target, strnlen(target, sizeof head.target));
	octal(head.mode, sizeof head.mode, st->st_mode & 07777);
	octal(head.uid, sizeof head.uid, st->st_uid & 07777777);
	octal(head.gid, sizeof head.gid, st->st_gid & 07777777);
	octal(head.size, sizeof head.size, size >> 33 ? 0 : size);
	octal(head.mtime, sizeof head.mtime, (uint64_t)mtime & 077777777777);
	snprintf(head.sum, sizeof head.sum, "%06o", head_sum(&head));
	head.sum[7] = ' ';
	return put(&head, sizeof head);
}

/* LENGTH KEY=VALUE: the length counts itself. */
static size_t record(char *to, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, digits = 1;

	for (size_t most = 10; rest + digits >= most; most *= 10)
		digits++;
	return (size_t)sprintf(to, "%zu %s=%s\n", rest + digits, key, value);
}

static int put_member(char type, const char *target, const struct stat *st)
{
	static char records[3 * PATH_MAX];
	uint64_t size = type == '0' ? (uint64_t)st->st_size : 0;
	size_t length = 0;
	char digits[24];
	int r = 0;

	if (strlen(name) > sizeof((struct head *)0)->name)
		length += record(records, "path", name);
	if (strlen(target) > sizeof((struct head *)0)->target)
		length += record(records + length, "linkpath", target);
	if (size >> 33) {
		snprintf(digits, sizeof digits, "%llu", (unsigned long long)size);
		length += record(records + length, "size", digits);
	}
	if (length)
		r = put_head('x', "pax", "", length, st);
	if (!r && length)
		r = put(records, length);
	if (!r && length)
		r = fill_block(length);
	return r ? r : put_head(type, name, target, size, st);
}

/* The member has the size that the head says, whatever becomes of the file meanwhile. */
static int put_bytes(int fd, uint64_t size)
{
	static char piece[PIECE];
	uint64_t at = 0;
	int r = 0;

	while (!r && at < size) {
		size_t most = size - at < PIECE ? (size_t)(size - at) : PIECE;
		ssize_t n = pread(fd, piece, most, (off_t)at);

		if (n < 0)
			return -errno;
		if (!n) {
			r = put_zeros(size - at);
			break;
		}
		r = put(piece, (size_t)n);
		at += (uint64_t)n;
	}
	return r ? r : fill_block(size);
}

static int pack_directory(int fd, size_t length, unsigned depth);

/* The end for a file that cannot be packed. If it has gone since its directory was read, it is left
 * out. */
static int not_packed(int at, int error)
{
	if (at == AT_FDCWD || !has_gone(error))
		return fail_at(error, name);
	tell_skipped(name);
	return 0;
}

static int pack_one(int at, const char *last, size_t length, unsigned depth)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd, r;

	if (fstatat(at, last, &st, AT_SYMLINK_NOFOLLOW))
		return not_packed(at, -errno);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(at, last, target, sizeof target - 1);
		target[n > 0 ? n : 0] = 0;
		return n < 0 ? not_packed(at, errno == EINVAL ? -ENOENT : -errno) : put_member('2', target, &st);
	}
	if (S_ISDIR(st.st_mode)) {
		if (depth == DEEPEST)
			return fail_at(-ELOOP, name);
		if ((fd = open_directory(at, last)) < 0)
			return not_packed(at, fd);
		name[length++] = '/';
		name[length] = 0;
		r = put_member('5', "", &st);
		if (!r)
			return pack_directory(fd, length, depth + 1);
		close(fd);
		return r;
	}
	if (!S_ISREG(st.st_mode)) {
		tell_skipped(name);
		return 0;
	}
	if ((fd = open_regular(at, last, O_RDONLY | O_NOFOLLOW, &st)) < 0)
		return not_packed(at, fd);
	r = put_member('0', "", &st);
	if (!r)
		r = put_bytes(fd, (uint64_t)st.st_size);
	close(fd);
	result += !r;
	return r ? fail_at(r, name) : 0;
}

/* Closes the directory. */
static int pack_directory(int fd, size_t length, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;
	int r = 0;

	if (!dir) {
		close(fd);
		return -errno;
	}
	while (!r && (errno = 0, d = readdir(dir))) {
		size_t more = strlen(d->d_name);

		if (is_dots(d->d_name))
			continue;
		if (length + more + 2 >= sizeof name) {
			r = fail_at(-ENAMETOOLONG, name);
			break;
		}
		memcpy(name + length, d->d_name, more + 1);
		r = pack_one(fd, d->d_name, length + more, depth);
	}
	/* A directory that has been removed has no entries. */
	if (!r && errno && errno != ENOENT)
		r = -errno;
	closedir(dir);
	return r;
}

int file_pack(const struct ask *ask, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	int fd, r;

	filled = 0;
	left = ask->count;
	*name = 0;
	if (stat(path, &st))
		return -errno;
	tell(BEGUN, 0, NULL, 0);
	if (S_ISDIR(st.st_mode)) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : pack_directory(fd, 0, 0);
	} else {
		snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
		r = pack_one(AT_FDCWD, path, strlen(name), 0);
	}
	if (!r)
		r = put_zeros(2 * BLOCK);
	if (!r)
		tell(DATA, 0, out, filled);
	return r;
}
