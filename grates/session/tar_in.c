/*
 * Makes files of a tar. The tar may be anybody's work: no member leaves the directory, by
 * its name or through a link, whichever member has made that. Owners, devices and fifos are left
 * out.
 */
#include "files.h"
#include "tar.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct member {
	char name[PATH_MAX], target[PATH_MAX];
	bool named, targeted, sized;
	uint64_t size;
};

/* Reads exactly so many bytes. 1: the tar ends. */
static int take(void *to, size_t count)
{
	for (char *at = to; count;) {
		int64_t n = next_bytes(at, count);

		if (n <= 0)
			return n ? (int)n : 1;
		at += n;
		count -= (size_t)n;
	}
	return 0;
}

static int skip(uint64_t count)
{
	static char piece[4096];
	int r = 0;

	for (; !r && count; count -= count < sizeof piece ? count : sizeof piece)
		r = take(piece, count < sizeof piece ? (size_t)count : sizeof piece);
	return r;
}

static uint64_t padding(uint64_t size)
{
	return (BLOCK - size % BLOCK) % BLOCK;
}

/* Octal digits, or, with the first bit set, a number in bytes. */
static uint64_t number(const char *field, size_t room)
{
	uint64_t n = 0;
	size_t i = 0;

	if (field[0] & 0x80) {
		for (i = room - 8; i < room; i++)
			n = n << 8 | (unsigned char)field[i];
		return n;
	}
	while (i < room && field[i] == ' ')
		i++;
	for (; i < room && field[i] >= '0' && field[i] <= '7'; i++)
		n = n << 3 | (uint64_t)(field[i] - '0');
	return n;
}

/* A text of a member that is stored as the bytes of another. */
static int take_text(char to[static PATH_MAX], uint64_t size)
{
	int r;

	if (size >= PATH_MAX)
		return -ENAMETOOLONG;
	if ((r = take(to, (size_t)size)))
		return r;
	to[size] = 0;
	return skip(padding(size));
}

static int take_record(struct member *member, char *record, size_t length)
{
	char *key = memchr(record, ' ', length),
	     *value = key ? memchr(key, '=', length - (size_t)(key - record)) : NULL;
	size_t value_length;

	if (!value)
		return -EINVAL;
	*value++ = 0;
	key++;
	if ((size_t)(value - record) >= length)
		return -EINVAL;
	value_length = length - (size_t)(value - record) - 1;
	value[value_length] = 0;
	if (!strcmp(key, "size")) {
		member->size = strtoull(value, NULL, 10);
		member->sized = true;
	}
	if (strcmp(key, "path") && strcmp(key, "linkpath"))
		return 0;
	if (value_length >= PATH_MAX || strlen(value) != value_length)
		return -EINVAL;
	if (*key == 'p')
		strcpy(member->name, value), member->named = true;
	else
		strcpy(member->target, value), member->targeted = true;
	return 0;
}

/* The records of a head of type x. */
static int take_records(struct member *member, uint64_t size)
{
	static char records[(64 << 10) + 1];
	size_t at = 0;
	int r;

	if (size >= sizeof records)
		return -EFBIG;
	if ((r = take(records, (size_t)size)))
		return r;
	records[size] = 0;
	while (!r && at < size) {
		char *end;
		size_t length = strtoul(records + at, &end, 10);

		if (end == records + at || *end != ' ' || length < 5 || length > size - at)
			return -EINVAL;
		r = take_record(member, records + at, length);
		at += length;
	}
	return r ? r : skip(padding(size));
}

/* Walks to the directory of a member's last name, and makes directories that are missing. A link
 * on the way is not followed. Changes `path`. */
static int walk(int root, char *path, char **last)
{
	int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char *part = path;

	if (at < 0)
		return -errno;
	for (;;) {
		char *slash;
		int next;

		while (*part == '/')
			part++;
		slash = strchr(part, '/');
		if (slash && !slash[strspn(slash, "/")])
			*slash = 0, slash = NULL;
		if (slash)
			*slash = 0;
		if (!strcmp(part, "..") || (!slash && !*part)) {
			close(at);
			return -EINVAL;
		}
		if (!slash) {
			*last = part;
			return at;
		}
		if (strcmp(part, ".")) {
			if (mkdirat(at, part, 0777) && errno != EEXIST) {
				next = -errno;
				close(at);
				return next;
			}
			next = open_directory(at, part);
			close(at);
			if ((at = next) < 0)
				return at;
		}
		part = slash + 1;
	}
}

static int make_regular(int at, const char *last, const struct head *head, uint64_t size)
{
	static char piece[PIECE];
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = (time_t)number(head->mtime, 12) } };
	struct made made;
	int r = make_file(&made, at);
	uint64_t left = size;

	if (r)
		return r;
	while (!r && left) {
		size_t most = left < PIECE ? (size_t)left : PIECE;

		if (!(r = take(piece, most)))
			r = write_whole(made.fd, piece, most);
		left -= most;
	}
	if (!r && fchmod(made.fd, number(head->mode, 8) & 0777))
		r = -errno;
	if (!r)
		futimens(made.fd, times);
	if (r) {
		drop_file(&made);
		return r == 1 ? -EINVAL : r;
	}
	return name_file(&made, last, false);
}

static int make_directory(int at, const char *last, const struct head *head)
{
	int fd, r = 0;

	if (!strcmp(last, "."))
		return 0;
	if (mkdirat(at, last, 0777) && errno != EEXIST)
		return -errno;
	if ((fd = open_directory(at, last)) < 0)
		return fd;
	if (fchmod(fd, (number(head->mode, 8) & 0777) | 0700))
		r = -errno;
	close(fd);
	return r;
}

/* Replaces a file that is there already, but not a directory. */
static int make_link(int at, const char *last, const char *target)
{
	if (unlinkat(at, last, 0) && errno != ENOENT)
		return -errno;
	return symlinkat(target, at, last) ? -errno : 0;
}

static int make_name(int root, int at, const char *last, char *target)
{
	char *other;
	int from = walk(root, target, &other), r = 0;

	if (from < 0)
		return from;
	if (unlinkat(at, last, 0) && errno != ENOENT)
		r = -errno;
	else if (linkat(from, other, at, last, 0))
		r = -errno;
	close(from);
	return r;
}

static int make(int root, struct member *member, const struct head *head)
{
	char name[PATH_MAX], *last;
	uint64_t size = strchr("12345", head->type) && head->type ? 0 : member->size;
	int at, r;

	strcpy(name, member->name);
	if (*name == '/')
		return fail_at(-EINVAL, name);
	if (!strcmp(name, ".") || !strcmp(name, "./"))
		return skip(size + padding(size));
	if ((at = walk(root, name, &last)) < 0)
		return fail_at(at, member->name);
	switch (head->type) {
	case '0':
	case '7':
	case 0:
		r = make_regular(at, last, head, size);
		if (!r)
			r = skip(padding(size));
		break;
	case '1':
		r = make_name(root, at, last, member->target);
		break;
	case '2':
		r = make_link(at, last, member->target);
		break;
	case '5':
		r = make_directory(at, last, head);
		break;
	default:
		tell_skipped(member->name);
		r = skip(size + padding(size));
		result--;
	}
	close(at);
	result++;
	return r < 0 ? fail_at(r, member->name) : r;
}

static void name_of(struct member *member, const struct head *head)
{
	size_t prefix = memcmp(head->magic, "ustar\0", 6) ? 0 : strnlen(head->prefix, sizeof head->prefix);
	size_t length = strnlen(head->name, sizeof head->name);

	if (!member->named) {
		memcpy(member->name, head->prefix, prefix);
		if (prefix)
			member->name[prefix++] = '/';
		memcpy(member->name + prefix, head->name, length);
		member->name[prefix + length] = 0;
	}
	if (!member->targeted) {
		length = strnlen(head->target, sizeof head->target);
		memcpy(member->target, head->target, length);
		member->target[length] = 0;
	}
	if (!member->sized)
		member->size = number(head->size, sizeof head->size);
}

/* 1: at the end. */
static int unpack_next(int root, struct member *member)
{
	struct head head;
	uint64_t size;
	int r = take(&head, sizeof head);

	if (r)
		return r;
	if (!head.name[0] && !head.sum[0])
		return 1;
	if (head_sum(&head) != number(head.sum, sizeof head.sum))
		return -EINVAL;
	size = number(head.size, sizeof head.size);
	switch (head.type) {
	case 'x':
		return take_records(member, size);
	case 'L':
		member->named = true;
		return take_text(member->name, size);
	case 'K':
		member->targeted = true;
		return take_text(member->target, size);
	case 'g':
		return skip(size + padding(size));
	default:
		name_of(member, &head);
		r = make(root, member, &head);
		*member = (struct member){ 0 };
		return r;
	}
}

int file_unpack(const struct ask *ask, const char *path)
{
	static struct member member;
	int r = ask->flags & PARENTS ? make_parents(path) : 0, root;

	if (r)
		return r;
	if (ask->flags & PARENTS && mkdir(path, 0777) && errno != EEXIST)
		return -errno;
	if ((root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -errno;
	member = (struct member){ 0 };
	while (!(r = unpack_next(root, &member)))
		;
	close(root);
	return r == 1 ? 0 : r;
}
