/* Operations on one file: make, remove, set attributes. */
#include "apply.h"
#include "tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static int remove_tree(int at, const char *name)
{
	struct dirent *entry;
	DIR *dir;
	int fd, r = 0;

	if (!unlinkat(at, name, 0))
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if ((fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 || !(dir = fdopendir(fd)))
		return -errno;
	while (!r && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		r = remove_tree(dirfd(dir), entry->d_name);
		if (r == -EACCES && !fchmod(dirfd(dir), 0700))
			r = remove_tree(dirfd(dir), entry->d_name);
	}
	closedir(dir);
	return r ? r : unlinkat(at, name, AT_REMOVEDIR) ? -errno : 0;
}

int apply_remove(const char *path)
{
	const char *name;
	int at = below_parent(path, &name), r = at < 0 ? -errno : remove_tree(at, name);

	below_forget();
	return r == -ENOENT ? 0 : r;
}

/* Owner as far as we may give files away, then the mode, which that could clear, then the times. */
int verb_set_attributes(int at, const char *name, const struct store_node *row)
{
	const struct timespec times[2] = { row->atime, row->mtime };
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if ((st.st_uid != row->uid || st.st_gid != row->gid) &&
	    fchownat(at, name, row->uid, row->gid, AT_SYMLINK_NOFOLLOW) && errno != EPERM && errno != EINVAL)
		return -errno;
	if (!S_ISLNK(row->mode) && fchmodat(at, name, row->mode & 07777, 0))
		return -errno;
	return utimensat(at, name, times, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

int verb_set_xattrs(int fd, const struct store_node *row)
{
	struct verb_xattr x = { 0 };

	while (verb_next_xattr(row, &x))
		/* ext4 calls an attribute that is too large a full disk. */
		if (fsetxattr(fd, x.name, x.value, x.size, 0) && errno != EOPNOTSUPP && errno != EPERM)
			return errno == ENOSPC ? -E2BIG : -errno;
	return 0;
}

/* Of what is there already: also those go that the row has not. */
static int replace_xattrs(int fd, const struct store_node *row)
{
	static char names[XATTRS];
	ssize_t size = flistxattr(fd, names, sizeof names);

	for (ssize_t i = 0; i < size; i += (ssize_t)strlen(names + i) + 1)
		if (!strncmp(names + i, "user.", 5) && fremovexattr(fd, names + i))
			return -errno;
	return verb_set_xattrs(fd, row);
}

/* Into a new file, whole. The part behind all written bytes is not read: it may be more than
 * there is time for. */
int verb_write_file(struct store *store, int fd, const struct store_node *row)
{
	static uint8_t bytes[STORE_CHUNK], zeros[STORE_CHUNK];
	int64_t chunks = row->size / STORE_CHUNK + 1, shown = row->origin_size / STORE_CHUNK + 1;
	int below, r = below_of_row(row, &below);

	if (!r && ftruncate(fd, row->size))
		r = -errno;
	for (int64_t chunk = 0; !r && chunk < chunks; chunk++) {
		ssize_t have;

		if ((below < 0 || chunk >= shown) &&
		    (chunk = store_next_chunk(store, row->ino, (uint64_t)chunk)) >= chunks)
			break;
		have = chunk < 0 ? (ssize_t)chunk : verb_chunk(store, row, below, (uint64_t)chunk, bytes);
		if (have < 0)
			r = (int)have;
		else if (memcmp(bytes, zeros, (size_t)have) &&
		    pwrite(fd, bytes, (size_t)have, (off_t)(chunk * STORE_CHUNK)) != have)
			r = errno ? -errno : -EIO;
	}
	if (below >= 0)
		close(below);
	return r ? r : verb_set_xattrs(fd, row);
}

int apply_make(struct store *store, const struct store_node *row, const char *made)
{
	const char *name;
	int at = below_parent(made, &name), fd = -1, r = 0;

	if (at < 0)
		return -errno;
	if (S_ISLNK(row->mode))
		r = symlinkat(row->target ? row->target : "", at, made) ? -errno : 0;
	else if (S_ISREG(row->mode))
		r = (fd = openat(at, made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0
		    ? -errno
		    : verb_write_file(store, fd, row);
	else if (S_ISFIFO(row->mode))
		r = mknodat(at, made, S_IFIFO | 0600, 0) ? -errno : 0;
	else
		r = -EOPNOTSUPP;
	if (fd >= 0)
		close(fd);
	return r ? r : verb_set_attributes(below_parent(made, &name), made, row);
}

int apply_attributes(const char *path, const struct store_node *row)
{
	const char *name;
	int fd = below_directory(path), r = fd < 0 ? -errno : replace_xattrs(fd, row);

	if (fd >= 0)
		close(fd);
	return r ? r : verb_set_attributes(below_parent(path, &name), name, row);
}
