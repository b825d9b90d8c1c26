/* The lower directory, and the bytes of files. Links on the way are not followed: the state says
 * which path was meant, and not where it leads by now. */
#include "tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct walk lower = { .root = -1, .at = -1 };

int below_begin(const char *path)
{
	if (lower.root < 0 && (lower.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -errno;
	return 0;
}

int below_sync(void)
{
	return syncfs(lower.root) ? -errno : 0;
}

void walk_forget(struct walk *walk)
{
	if (walk->at >= 0)
		close(walk->at);
	free(walk->path);
	walk->at = -1;
	walk->path = NULL;
	walk->length = 0;
}

void below_forget(void)
{
	walk_forget(&lower);
}

/* Goes on from `at`, which it closes, along so many bytes of a path. */
static int descend(int at, const char *path, size_t length)
{
	const char *end = path + length;
	char part[256];

	while (at >= 0 && path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t size = (size_t)((slash ? slash : end) - path);
		int next;

		if (size >= sizeof part) {
			close(at);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, size);
		part[size] = 0;
		next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += size + !!slash;
	}
	return at;
}

int walk_parent(struct walk *walk, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0, known = walk->length;
	char *kept;
	int at;

	*name = slash ? slash + 1 : *path ? path : ".";
	if (!length)
		return walk->root;
	if (walk->path && known <= length && !memcmp(path, walk->path, known) &&
	    (known == length || path[known] == '/')) {
		if (known == length)
			return walk->at;
		at = descend(fcntl(walk->at, F_DUPFD_CLOEXEC, 0), path + known + 1, length - known - 1);
	} else {
		at = descend(fcntl(walk->root, F_DUPFD_CLOEXEC, 0), path, length);
	}
	if (at < 0 || !(kept = strndup(path, length)))
		return -1;
	walk_forget(walk);
	*walk = (struct walk){ walk->root, at, kept, length };
	return at;
}

int below_parent(const char *path, const char **name)
{
	return walk_parent(&lower, path, name);
}

bool below_look(const char *path, struct stat *st)
{
	const char *name;
	int at = below_parent(path, &name);

	return at >= 0 && !fstatat(at, name, st, AT_SYMLINK_NOFOLLOW);
}

bool below_birth(const char *path, struct timespec *birth)
{
	const char *name;
	int at = below_parent(path, &name);
	struct statx st;

	if (at < 0 || statx(at, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_BTIME, &st) || !S_ISDIR(st.stx_mode) ||
	    !(st.stx_mask & STATX_BTIME))
		return false;
	*birth = (struct timespec){ .tv_sec = st.stx_btime.tv_sec, .tv_nsec = st.stx_btime.tv_nsec };
	return true;
}

int below_directory(const char *path)
{
	const char *name;
	int at = below_parent(path, &name);

	return at < 0 ? -1 : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **verb_names(const char *path)
{
	int fd = below_directory(path);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char **names = NULL;
	size_t count = 0;

	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!(count & (count - 1)) && !(names = realloc(names, (2 * count + 2) * sizeof *names)))
			lind_die("no memory");
		if (!(names[count++] = strdup(entry->d_name)))
			lind_die("no memory");
	}
	if (dir)
		closedir(dir);
	if (!names)
		return NULL;
	names[count] = NULL;
	qsort(names, count, sizeof *names, by_name);
	return names;
}

int below_open(const char *path)
{
	const char *name;
	int at = below_parent(path, &name);

	int fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	/* A path that a state from elsewhere calls a file may be a device. */
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

int below_of_row(const struct store_node *row, int *fd)
{
	*fd = -1;
	if (!row->origin || row->origin_size <= 0 || row->size <= 0)
		return 0;
	return (*fd = below_open(row->origin)) < 0 ? -errno : 0;
}

ssize_t below_link(const char *path, char *to, size_t size)
{
	const char *name;
	int at = below_parent(path, &name);

	return at < 0 ? -1 : readlinkat(at, name, to, size);
}

ssize_t verb_chunk(struct store *store, const struct store_node *node, int below, uint64_t chunk, uint8_t *bytes)
{
	int64_t start = (int64_t)(chunk * STORE_CHUNK),
		shown = node->origin_size < node->size ? node->origin_size : node->size;
	size_t got = 0;
	ssize_t n;
	int r;

	memset(bytes, 0, STORE_CHUNK);
	while (below >= 0 && got < STORE_CHUNK && start + (int64_t)got < shown) {
		int64_t left = shown - start - (int64_t)got;

		n = pread(below, bytes + got, left < (int64_t)(STORE_CHUNK - got) ? (size_t)left : STORE_CHUNK - got,
		    start + (int64_t)got);
		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
	}
	if ((r = store_read(store, node->ino, chunk, bytes)) < 0)
		return r;
	return node->size - start < (int64_t)STORE_CHUNK ? (node->size > start ? node->size - start : 0)
							 : (ssize_t)STORE_CHUNK;
}

uint8_t *verb_bytes(struct store *store, const struct store_node *node, size_t *size)
{
	int below = -1;
	uint8_t *bytes;

	if (S_ISLNK(node->mode)) {
		*size = node->target ? strlen(node->target) : 0;
		return (uint8_t *)strdup(node->target ? node->target : "");
	}
	if (!S_ISREG(node->mode) || node->size > LARGE || node->size < 0)
		return NULL;
	*size = (size_t)node->size;
	/* Chunks are whole. */
	if (!(bytes = malloc((*size / STORE_CHUNK + 1) * STORE_CHUNK)))
		return NULL;
	if (node->origin)
		below = below_open(node->origin);
	for (uint64_t chunk = 0; chunk * STORE_CHUNK < *size; chunk++) {
		if (verb_chunk(store, node, below, chunk, bytes + chunk * STORE_CHUNK) < 0) {
			free(bytes);
			bytes = NULL;
			break;
		}
	}
	if (below >= 0)
		close(below);
	return bytes;
}

uint8_t *below_bytes(const char *path, size_t *size)
{
	uint8_t *bytes;
	struct stat st;
	size_t got = 0;
	ssize_t n = 1;
	int fd;

	if (!below_look(path, &st) || st.st_size > LARGE)
		return NULL;
	if (!(bytes = malloc((size_t)st.st_size + 1)))
		return NULL;
	if (S_ISLNK(st.st_mode)) {
		n = below_link(path, (char *)bytes, (size_t)st.st_size + 1);
		*size = n < 0 ? 0 : (size_t)n;
		return bytes;
	}
	if (!S_ISREG(st.st_mode) || (fd = below_open(path)) < 0) {
		free(bytes);
		return NULL;
	}
	while (got < (size_t)st.st_size && (n = read(fd, bytes + got, (size_t)st.st_size - got)) > 0)
		got += (size_t)n;
	close(fd);
	*size = got;
	return bytes;
}
