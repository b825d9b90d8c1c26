/* The lower directory, and the bytes of files. Links on the way are not followed: the state says which path was meant, and not where it leads by now. */
#include "verb_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int root = -1;

int below_begin(const char *path)
{
	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -errno : 0;
}

int below_sync(void)
{
	return syncfs(root) ? -errno : 0;
}

int below_parent(const char *path, const char **name)
{
	int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	const char *slash;
	char part[256];

	while (at >= 0 && (slash = strchr(path, '/'))) {
		size_t length = (size_t)(slash - path);

		if (length >= sizeof part) {
			close(at);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, length);
		part[length] = 0;
		next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path = slash + 1;
	}
	*name = *path ? path : ".";
	return at;
}

bool below_look(const char *path, struct stat *st)
{
	const char *name;
	int at = below_parent(path, &name), r;

	if (at < 0)
		return false;
	r = fstatat(at, name, st, AT_SYMLINK_NOFOLLOW);
	close(at);
	return !r;
}

int below_directory(const char *path)
{
	const char *name;
	int at = below_parent(path, &name), fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (at >= 0)
		close(at);
	return fd;
}

int below_open(const char *path)
{
	const char *name;
	int at = below_parent(path, &name), fd;

	if (at < 0)
		return -1;
	fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	close(at);
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
	ssize_t n;

	if (at < 0)
		return -1;
	n = readlinkat(at, name, to, size);
	close(at);
	return n;
}

ssize_t verb_chunk(struct store *store, const struct store_node *node, int below, uint64_t chunk, uint8_t *bytes)
{
	int64_t start = (int64_t)(chunk * STORE_CHUNK), shown = node->origin_size < node->size ? node->origin_size : node->size;
	size_t got = 0;
	ssize_t n;
	int r;

	memset(bytes, 0, STORE_CHUNK);
	while (below >= 0 && got < STORE_CHUNK && start + (int64_t)got < shown) {
		int64_t left = shown - start - (int64_t)got;

		n = pread(below, bytes + got, left < (int64_t)(STORE_CHUNK - got) ? (size_t)left : STORE_CHUNK - got, start + (int64_t)got);
		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
	}
	if ((r = store_read(store, node->ino, chunk, bytes)) < 0)
		return r;
	return node->size - start < (int64_t)STORE_CHUNK ? (node->size > start ? node->size - start : 0) : (ssize_t)STORE_CHUNK;
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
