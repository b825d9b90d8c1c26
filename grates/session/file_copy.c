/* Copies within a session. No link is followed, neither in the source nor at the destination. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct copy {
	bool recursive;
	bool known; /* where the copy of the directory is */
	dev_t dev;
	ino_t ino;
};

static char piece[PIECE];

/* Copies bytes up to `end`. */
static int copy_range(int from, int to, off_t at, off_t end)
{
	while (at < end) {
		size_t most = end - at < PIECE ? (size_t)(end - at) : PIECE;
		ssize_t n = pread(from, piece, most, at);

		if (n < 0)
			return -errno;
		if (!n || is_interrupted())
			return n ? -ECANCELED : 0;
		for (ssize_t done = 0; done < n;) {
			ssize_t written = pwrite(to, piece + done, (size_t)(n - done), at + done);

			if (written <= 0)
				return written ? -errno : -EIO;
			done += written;
		}
		at += n;
	}
	return 0;
}

/* Holes stay holes, or a small file could fill a disk. */
static int copy_bytes(int from, int to, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA), end;
		int r;

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			data = at;
		end = lseek(from, data, SEEK_HOLE);
		if (end <= data || end > size)
			end = size;
		if ((r = copy_range(from, to, data, end)))
			return r;
		at = end;
	}
	return ftruncate(to, size) ? -errno : 0;
}

/* The end for a file that cannot be copied. If it has gone since its directory was read, it is left
 * out. */
static int not_copied(int error, const char *name, unsigned depth)
{
	if (!depth || !has_gone(error))
		return fail_at(error, name);
	result--;
	tell_skipped(name);
	return 0;
}

static int copy_file(int from_at, const char *from, int to_at, const char *to, unsigned depth)
{
	struct made made;
	struct stat st;
	int fd = open_regular(from_at, from, O_RDONLY | O_NOFOLLOW, &st), r;

	if (fd < 0)
		return not_copied(fd, from, depth);
	if (!(r = make_file(&made, to_at))) {
		r = copy_bytes(fd, made.fd, st.st_size);
		if (!r && fchmod(made.fd, st.st_mode & 0777))
			r = -errno;
		if (r)
			drop_file(&made);
		else
			r = name_file(&made, to, false);
	}
	close(fd);
	return r ? fail_at(r, to) : 0;
}

static int copy_at(struct copy *copy, int from_at, const char *from, int to_at, const char *to, unsigned depth);

static int copy_entries(struct copy *copy, DIR *dir, int to, unsigned depth)
{
	struct dirent *d;
	int r = 0;

	while (!r && (errno = 0, d = readdir(dir)))
		if (!is_dots(d->d_name))
			r = copy_at(copy, dirfd(dir), d->d_name, to, d->d_name, depth + 1);
	/* A directory that has been removed has no entries. */
	return r || !errno || errno == ENOENT ? r : -errno;
}

static int copy_directory(
    struct copy *copy, int from_at, const char *from, int to_at, const char *to, unsigned depth, mode_t mode)
{
	int fd = open_directory(from_at, from), to_fd, r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct stat st;

	if (!dir)
		return not_copied(fd < 0 ? fd : -errno, from, depth);
	if (mkdirat(to_at, to, 0700) && errno != EEXIST)
		r = fail_at(-errno, to);
	to_fd = r ? -1 : open_directory(to_at, to);
	if (!r && to_fd < 0)
		r = fail_at(to_fd, to);
	if (!r && !copy->known && !fstat(to_fd, &st)) {
		copy->known = true;
		copy->dev = st.st_dev;
		copy->ino = st.st_ino;
	}
	if (!r)
		r = copy_entries(copy, dir, to_fd, depth);
	if (!r && fchmod(to_fd, mode & 0777))
		r = fail_at(-errno, to);
	if (to_fd >= 0)
		close(to_fd);
	closedir(dir);
	return r;
}

static int copy_at(struct copy *copy, int from_at, const char *from, int to_at, const char *to, unsigned depth)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t length;

	result++;
	if (fstatat(from_at, from, &st, AT_SYMLINK_NOFOLLOW))
		return not_copied(-errno, from, depth);
	/* The copy lies in what is copied. */
	if (copy->known && st.st_dev == copy->dev && st.st_ino == copy->ino)
		return fail_at(-EINVAL, from);
	if (S_ISREG(st.st_mode))
		return copy_file(from_at, from, to_at, to, depth);
	if (S_ISDIR(st.st_mode)) {
		if (!copy->recursive || depth == DEEPEST)
			return fail_at(copy->recursive ? -ELOOP : -EISDIR, from);
		return copy_directory(copy, from_at, from, to_at, to, depth, st.st_mode);
	}
	if (S_ISLNK(st.st_mode)) {
		length = readlinkat(from_at, from, target, sizeof target - 1);
		target[length > 0 ? length : 0] = 0;
		if (length < 0)
			return not_copied(errno == EINVAL ? -ENOENT : -errno, from, depth);
		return symlinkat(target, to_at, to) ? fail_at(-errno, to) : 0;
	}
	result--;
	tell_skipped(from);
	return 0;
}

int file_copy(const struct ask *ask, const char *from, const char *to)
{
	struct copy copy = { .recursive = ask->flags & RECURSIVE };
	const char *from_name, *to_name;
	int from_at, to_at, r = ask->flags & PARENTS ? make_parents(to) : 0;

	if (r || (r = from_at = open_parent(from, &from_name)) < 0)
		return r;
	if ((r = to_at = open_parent(to, &to_name)) >= 0) {
		struct stat st;

		if (ask->flags & CREATE && !fstatat(to_at, to_name, &st, AT_SYMLINK_NOFOLLOW))
			r = fail_at(-EEXIST, to);
		else
			r = copy_at(&copy, from_at, from_name, to_at, to_name, 0);
		close(to_at);
	}
	close(from_at);
	return r;
}
