/*
 * The lower directory. It is opened for reading only, each path from its root without following a
 * link, so that what others put into it while we look cannot lead us elsewhere.
 */
#include <dirent.h>
#include <lind/openat2.h>
#include <linux/openat2.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "lower.h"

#define OPENED      64  /* descriptors of directories that are kept, */
#define FILES       256  /* and of files */
#define STAYS_BELOW (RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH)

struct opened {
	char *path;
	int fd;
	uint64_t used;
};

static struct opened table[OPENED];
static uint64_t uses;
static struct imfs_under *files[FILES];
static unsigned next_file;
static int root = -1;
static uint32_t home_major, home_minor;

int lower_init(const char *path)
{
	struct statx st;

	if ((root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -errno;
	if (statx(root, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st))
		return -errno;
	home_major = st.stx_dev_major;
	home_minor = st.stx_dev_minor;
	return 0;
}

void lower_space(uint64_t *blocks, uint64_t *left)
{
	struct statfs st;

	if (fstatfs(root, &st) || st.f_bsize < 512)
		return;
	*blocks = (uint64_t)st.f_blocks * (uint64_t)st.f_bsize / 4096;
	*left = (uint64_t)st.f_bavail * (uint64_t)st.f_bsize / 4096;
}

bool lower_is_home(const struct statx *st)
{
	return st->stx_dev_major == home_major && st->stx_dev_minor == home_minor;
}

char *lower_join(const char *dir, const char *name)
{
	size_t length = strlen(dir), more = strlen(name);
	char *path = malloc(length + more + 2);

	if (!path)
		return NULL;
	memcpy(path, dir, length);
	if (length)
		path[length++] = '/';
	memcpy(path + length, name, more + 1);
	return path;
}

/* From a directory that is open to what is further down. Paths longer than the kernel takes are
 * gone piece by piece. */
static int open_below(const char *path, uint32_t flags)
{
	uint64_t how[3] = { flags | O_CLOEXEC | O_NOFOLLOW, 0, STAYS_BELOW };
	int from = root, next;
	char piece[IMFS_PATH];

	while (strlen(path) >= IMFS_PATH) {
		const char *end = path + IMFS_PATH - 1;

		while (*end != '/')
			end--;
		memcpy(piece, path, (size_t)(end - path));
		piece[end - path] = 0;
		how[0] = O_PATH | O_DIRECTORY | O_CLOEXEC;
		next = (int)syscall(SYS_openat2, from, piece, how, sizeof how);
		if (from != root)
			close(from);
		if (next < 0)
			return -1;
		from = next;
		path = end + 1;
		how[0] = flags | O_CLOEXEC | O_NOFOLLOW;
	}
	next = (int)syscall(SYS_openat2, from, *path ? path : ".", how, sizeof how);
	if (from != root)
		close(from);
	return next;
}

void lower_forget(void)
{
	for (struct opened *o = table; o < table + OPENED; o++)
		if (o->path) {
			close(o->fd);
			free(o->path);
			*o = (struct opened){ 0 };
		}
}

int lower_dir(const char *path)
{
	struct opened *oldest = &table[0];
	char *copy;
	int fd;

	if (!*path)
		return root;
	for (struct opened *o = table; o < table + OPENED; o++) {
		if (o->path && !strcmp(o->path, path)) {
			o->used = ++uses;
			return o->fd;
		}
		if (o->used < oldest->used)
			oldest = o;
	}
	if (!(copy = strdup(path)))
		return -ENOMEM;
	if ((fd = open_below(path, O_RDONLY | O_DIRECTORY)) < 0) {
		fd = -errno;
		free(copy);
		return fd;
	}
	if (oldest->path) {
		close(oldest->fd);
		free(oldest->path);
	}
	*oldest = (struct opened){ copy, fd, ++uses };
	return fd;
}

void lower_close(struct imfs_under *u)
{
	for (unsigned i = 0; i < FILES && u->fd >= 0; i++)
		if (files[i] == u) {
			close(u->fd);
			u->fd = -1;
			files[i] = NULL;
		}
}

int lower_file(struct imfs_under *u)
{
	struct stat st;
	int fd;

	if (u->fd >= 0)
		return u->fd;
	/* Not to wait for the other end of a fifo that somebody has put there. */
	if ((fd = open_below(u->origin, O_RDONLY | O_NONBLOCK)) < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EIO;
	}
	if (files[next_file])
		lower_close(files[next_file]);
	files[next_file] = u;
	next_file = (next_file + 1) % FILES;
	return u->fd = fd;
}

/* The directory of a path, and its last name. A directory that may only be searched is opened
 * for this time: `*mine`. */
static int parent(const char *path, const char **name, bool *mine)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int fd;

	*mine = false;
	*name = slash ? slash + 1 : path;
	if (!slash)
		return root;
	if (!(dir = strndup(path, (size_t)(slash - path))))
		return -ENOMEM;
	if ((fd = lower_dir(dir)) == -EACCES) {
		fd = open_below(dir, O_PATH | O_DIRECTORY);
		fd = fd < 0 ? -errno : fd;
		*mine = fd >= 0;
	}
	free(dir);
	return fd;
}

int lower_stat(const char *path, struct statx *st)
{
	const char *name;
	bool mine;
	int fd = parent(path, &name, &mine), r = 0;

	if (fd < 0)
		return fd;
	if (statx(fd, name, *name ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, st))
		r = -errno;
	if (mine)
		close(fd);
	return r;
}

int lower_link(const char *path, char *target, size_t size)
{
	const char *name;
	bool mine;
	int fd = parent(path, &name, &mine);
	ssize_t length;

	if (fd < 0)
		return fd;
	length = readlinkat(fd, name, target, size - 1);
	if (length >= 0)
		target[length] = 0;
	else
		length = -errno;
	if (mine)
		close(fd);
	return (int)length;
}
