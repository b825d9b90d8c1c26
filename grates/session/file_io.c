/* The bytes of files. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static char piece[PIECE];

/* The error for a file that is not a regular one. A device or a fifo might wait for ever. */
static int other_kind(mode_t mode)
{
	return S_ISDIR(mode) ? -EISDIR : -ENXIO;
}

int open_regular(int at, const char *name, int flags, struct stat *st)
{
	int fd, r = 0;

	/* Some devices do something as soon as they are opened. */
	if (fstatat(at, name, st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0))
		return -errno;
	if (!S_ISREG(st->st_mode))
		return other_kind(st->st_mode);
	if ((fd = openat(at, name, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0)
		return -errno;
	if (fstat(fd, st))
		r = -errno;
	else if (!S_ISREG(st->st_mode))
		r = other_kind(st->st_mode);
	if (r)
		close(fd);
	return r ? r : fd;
}

int write_whole(int fd, const char *bytes, size_t count)
{
	while (count) {
		ssize_t n = write(fd, bytes, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		bytes += n;
		count -= (size_t)n;
	}
	return 0;
}

/* Ends with 1 in `result` where there is more behind what was wanted. */
int file_read(const struct ask *ask, const char *path)
{
	int64_t at = ask->from, left = ask->count;
	struct stat st;
	int fd = open_regular(AT_FDCWD, path, O_RDONLY, &st), r = 0;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	tell_entry(&st, 0, "", "");
	while (!r && left > 0) {
		if (is_interrupted()) {
			r = -ECANCELED;
			break;
		}
		n = pread(fd, piece, left < PIECE ? (size_t)left : PIECE, at);
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		tell(DATA, at, piece, (size_t)n);
		at += n;
		left -= n;
	}
	result = !r && left <= 0 && pread(fd, piece, 1, at) == 1;
	close(fd);
	return r;
}

bool is_temporary(const char *name)
{
	size_t length = sizeof TEMPORARY - 1;

	return !strncmp(name, TEMPORARY, length) && strlen(name) == length + 8 &&
	    strspn(name + length, "0123456789abcdef") == 8;
}

int make_file(struct made *made, int at)
{
	for (int tries = 0; tries < 16; tries++) {
		uint32_t number;

		if (getrandom(&number, sizeof number, 0) != sizeof number)
			return -EIO;
		snprintf(made->temporary, sizeof made->temporary, TEMPORARY "%08x", number);
		made->at = at;
		made->fd = openat(at, made->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (made->fd >= 0 || errno != EEXIST)
			return made->fd < 0 ? -errno : 0;
	}
	return -EEXIST;
}

void drop_file(struct made *made)
{
	unlinkat(made->at, made->temporary, 0);
	close(made->fd);
}

int name_file(struct made *made, const char *name, bool create)
{
	int r = 0;

	if (!create)
		r = renameat(made->at, made->temporary, made->at, name) ? -errno : 0;
	else if (renameat2(made->at, made->temporary, made->at, name, RENAME_NOREPLACE))
		r = -errno;
	if (create && (r == -EINVAL || r == -ENOSYS)) {
		r = linkat(made->at, made->temporary, made->at, name, 0) ? -errno : 0;
		if (!r)
			unlinkat(made->at, made->temporary, 0);
	}
	if (r)
		drop_file(made);
	else
		close(made->fd);
	return r;
}

static int write_pieces(int fd)
{
	int64_t n;
	int r = 0;

	while (!r && (n = next_bytes(piece, sizeof piece)))
		if (n < 0)
			r = (int)n;
		else if (!(r = write_whole(fd, piece, (size_t)n)))
			result += n;
	return r;
}

static int write_in_place(const struct ask *ask, const char *path)
{
	int flags = ask->op == APPEND ? O_APPEND : ask->flags & CREATE ? O_EXCL : 0, r = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, 0666);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = other_kind(st.st_mode);
	else if (ask->op == WRITE && ftruncate(fd, 0))
		r = -errno;
	if (!r)
		r = write_pieces(fd);
	if (!r && ask->flags & SET_MODE && fchmod(fd, ask->mode & 07777))
		r = -errno;
	close(fd);
	return r;
}

static int write_beside(const struct ask *ask, const char *path)
{
	const char *name;
	struct made made;
	struct stat st;
	int at = open_parent(path, &name), r;
	bool there;

	if (at < 0)
		return at;
	there = !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW);
	if (there && ask->flags & CREATE)
		r = -EEXIST;
	else if (there && !S_ISREG(st.st_mode))
		r = other_kind(st.st_mode);
	else
		r = make_file(&made, at);
	if (r) {
		close(at);
		/* A rule may allow this very file and no other. */
		return r == -EROFS || r == -EACCES || r == -EPERM ? write_in_place(ask, path) : r;
	}
	r = write_pieces(made.fd);
	if (!r && (there || ask->flags & SET_MODE) &&
	    fchmod(made.fd, (ask->flags & SET_MODE ? ask->mode : st.st_mode) & 07777))
		r = -errno;
	if (r)
		drop_file(&made);
	else
		r = name_file(&made, name, ask->flags & CREATE);
	close(at);
	return r;
}

int file_write(const struct ask *ask, const char *path)
{
	char real[PATH_MAX];
	struct stat st;
	int r = ask->flags & PARENTS ? make_parents(path) : 0;

	if (r)
		return r;
	/* The file that a link leads to is replaced, and not the link. */
	if (!(ask->flags & CREATE) && !lstat(path, &st) && S_ISLNK(st.st_mode)) {
		if (!realpath(path, real))
			return -errno;
		path = real;
	}
	return ask->op == APPEND || ask->flags & IN_PLACE ? write_in_place(ask, path) : write_beside(ask, path);
}
