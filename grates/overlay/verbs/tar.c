/* A tar file, as export writes it. */
#include "export.h"
#include <errno.h>
#include <fcntl.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A header of POSIX's ustar; fields that do not fit into it precede it as records of pax. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100], magic[6], version[2],
	    user[32], group[32], device[16], prefix[155], rest[12];
};

static FILE *out;

static void put(const void *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, out) != size)
		lind_die("the archive: %s", strerror(errno));
}

static void pad(uint64_t size)
{
	static const char zeros[512];

	put(zeros, (size_t)(-size & 511));
}

static void octal(char *to, size_t size, uint64_t value)
{
	uint64_t most = (1ull << (3 * (size - 1))) - 1;

	snprintf(to, size, "%0*llo", (int)size - 1, (unsigned long long)(value > most ? most : value));
}

static void put_header(const char *name, char type, const char *target, const struct store_node *node, uint64_t size)
{
	struct header h = { .type = type,
		.magic = "ustar",
		.version = { '0', '0' },
		.device = "0000000\0"
			  "0000000" };
	unsigned sum = 0;

	strncpy(h.name, name, sizeof h.name);
	strncpy(h.target, target, sizeof h.target);
	octal(h.mode, sizeof h.mode, node->mode & 07777);
	octal(h.uid, sizeof h.uid, node->uid);
	octal(h.gid, sizeof h.gid, node->gid);
	octal(h.size, sizeof h.size, size);
	octal(h.mtime, sizeof h.mtime, node->mtime.tv_sec > 0 ? (uint64_t)node->mtime.tv_sec : 0);
	memset(h.sum, ' ', sizeof h.sum);
	for (size_t i = 0; i < sizeof h; i++)
		sum += ((unsigned char *)&h)[i];
	snprintf(h.sum, sizeof h.sum, "%06o", sum);
	put(&h, sizeof h);
}

/* A record tells its own length, with the digits of that. */
static void record(FILE *to, const char *prefix, const char *key, const char *value, size_t size)
{
	size_t length = strlen(prefix) + strlen(key) + size + 3, digits = 1;

	for (size_t whole = length + digits; snprintf(NULL, 0, "%zu", whole) != (int)digits; whole = length + digits)
		digits++;
	fprintf(to, "%zu %s%s=", length + digits, prefix, key);
	fwrite(value, 1, size, to);
	fputc('\n', to);
}

/* All that does not fit into a header, as text of this length. The caller frees it. */
static char *records(
    const char *path, const char *target, const struct store_node *node, uint64_t size, bool opaque, size_t *length)
{
	struct verb_xattr x = { 0 };
	char number[24], *text;
	FILE *to = open_memstream(&text, length);

	if (!to)
		lind_die("no memory");
	if (strlen(path) > 100)
		record(to, "", "path", path, strlen(path));
	if (strlen(target) > 100)
		record(to, "", "linkpath", target, strlen(target));
	if (size >> 33)
		record(
		    to, "", "size", number, (size_t)snprintf(number, sizeof number, "%llu", (unsigned long long)size));
	while (verb_next_xattr(node, &x))
		record(to, "SCHILY.xattr.", x.name, x.value, x.size);
	if (opaque)
		record(to, "SCHILY.xattr.", OPAQUE, "y", 1);
	if (fclose(to))
		lind_die("no memory");
	return text;
}

static void put_entry(
    const char *path, char type, const char *target, const struct store_node *node, uint64_t size, bool opaque)
{
	size_t length;
	char *text = records(path, target, node, size, opaque, &length);

	if (length) {
		put_header("pax", 'x', "", node, length);
		put(text, length);
		pad(length);
	}
	free(text);
	put_header(path, type, target, node, size);
}

static void put_file(struct store *store, const char *path, const struct store_node *node)
{
	static uint8_t bytes[STORE_CHUNK];
	int below, r = below_of_row(node, &below);

	if (r)
		lind_die("%s: %s", path, strerror(-r));
	put_entry(path, '0', "", node, (uint64_t)node->size, false);
	for (uint64_t chunk = 0; (int64_t)(chunk * STORE_CHUNK) < node->size; chunk++) {
		ssize_t have = verb_chunk(store, node, below, chunk, bytes);

		if (have < 0)
			lind_die("%s: %s", path, strerror((int)-have));
		put(bytes, (size_t)have);
	}
	pad((uint64_t)node->size);
	if (below >= 0)
		close(below);
}

void tar_node(struct store *store, const char *path, const struct store_node *node, bool opaque)
{
	char *name;

	if (S_ISREG(node->mode))
		put_file(store, path, node);
	else if (S_ISLNK(node->mode))
		put_entry(path, '2', node->target ? node->target : "", node, 0, false);
	else if (S_ISFIFO(node->mode))
		put_entry(path, '6', "", node, 0, false);
	else if (S_ISDIR(node->mode)) {
		name = verb_joined(path, "");
		put_entry(name, '5', "", node, 0, opaque);
		free(name);
	}
}

void tar_link(const char *path, const char *first, const struct store_node *node)
{
	put_entry(path, '1', first, node, 0, false);
}

void tar_whiteout(const char *path)
{
	put_entry(path, '3', "", &(struct store_node){ 0 }, 0, false);
}

void tar_begin(const char *output)
{
	int fd = output ? lind_open_file(output, NULL, O_WRONLY | O_CREAT | O_TRUNC, 0600) : 1;

	if (fd < 0 || !(out = fdopen(fd, "w")))
		lind_die("%s: %s", output ? lind_file_name(output) : "standard output", strerror(errno));
}

void tar_end(void)
{
	static const char end[1024];

	put(end, sizeof end);
	if (fflush(out))
		lind_die("the archive: %s", strerror(errno));
}
