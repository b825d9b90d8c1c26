/* export: all that an overlay shows, as a tar file or into a directory. */
#include "verb_tree.h"
#include "verb_print.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A header of POSIX's ustar; what does not fit into it goes before it as records of pax. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100], magic[6], version[2], user[32], group[32], device[16],
		prefix[155], rest[12];
};

static const struct verb_list *list;
static struct store *state;
static FILE *out;		/* of a tar */
static int to = -1;		/* of a directory: it, opened */

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
	struct header h = { .type = type, .magic = "ustar", .version = { '0', '0' } };
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
static size_t record(char *to, const char *key, const char *value)
{
	size_t length = strlen(key) + strlen(value) + 3, digits = 1;

	for (size_t whole = length + digits; snprintf(NULL, 0, "%zu", whole) != (int)digits; whole = length + digits)
		digits++;
	return (size_t)sprintf(to, "%zu %s=%s\n", length + digits, key, value);
}

static void put_entry(const char *path, char type, const char *target, const struct store_node *node, uint64_t size)
{
	/* Names that are deep down are longer than paths may be. */
	char *records = malloc(strlen(path) + strlen(target) + 128), number[24];
	size_t length = 0;

	if (!records)
		lind_die("no memory");

	snprintf(number, sizeof number, "%llu", (unsigned long long)size);
	if (strlen(path) > 100)
		length += record(records + length, "path", path);
	if (strlen(target) > 100)
		length += record(records + length, "linkpath", target);
	if (size >> 33)
		length += record(records + length, "size", number);
	if (length) {
		put_header("pax", 'x', "", node, length);
		put(records, length);
		pad(length);
	}
	free(records);
	put_header(path, type, target, node, size);
}

static void tar_file(const char *path, const struct store_node *node)
{
	static uint8_t bytes[STORE_CHUNK];
	int below, r = below_of_row(node, &below);

	if (r)
		lind_die("%s: %s", verb_shown(path), strerror(-r));
	put_entry(path, '0', "", node, (uint64_t)node->size);
	for (uint64_t chunk = 0; (int64_t)(chunk * STORE_CHUNK) < node->size; chunk++) {
		ssize_t have = verb_chunk(state, node, below, chunk, bytes);

		if (have < 0)
			lind_die("%s: %s", verb_shown(path), strerror((int)-have));
		put(bytes, (size_t)have);
	}
	pad((uint64_t)node->size);
	if (below >= 0)
		close(below);
}

/* Into a directory that had nothing in it. */
static void copy_node(const char *path, const struct store_node *node)
{
	int fd = -1, r = 0;

	if (S_ISREG(node->mode))
		r = (fd = openat(to, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0 ? -errno : verb_write_file(state, fd, node);
	else if (S_ISLNK(node->mode))
		r = symlinkat(node->target ? node->target : "", to, path) ? -errno : 0;
	else if (S_ISFIFO(node->mode))
		r = mknodat(to, path, S_IFIFO | 0600, 0) ? -errno : 0;
	else if (S_ISDIR(node->mode))
		r = mkdirat(to, path, 0700) ? -errno : 0;
	else
		return;
	if (fd >= 0)
		close(fd);
	/* Of directories when all is in them. */
	if (!r && !S_ISDIR(node->mode))
		r = verb_set_attributes(to, path, node);
	if (r)
		lind_die("%s: %s", verb_shown(path), strerror(-r));
}

static void leave_directory(const char *path, const struct store_node *node)
{
	int r = to < 0 ? 0 : verb_set_attributes(to, path, node);

	if (r)
		lind_die("%s: %s", verb_shown(path), strerror(-r));
}

static void put_node(const char *path, const struct store_node *node)
{
	char *name;

	if (to >= 0)
		copy_node(path, node);
	else if (S_ISREG(node->mode))
		tar_file(path, node);
	else if (S_ISLNK(node->mode))
		put_entry(path, '2', node->target ? node->target : "", node, 0);
	else if (S_ISFIFO(node->mode))
		put_entry(path, '6', "", node, 0);
	else if (S_ISDIR(node->mode)) {
		if (asprintf(&name, "%s/", path) < 0)
			lind_die("no memory");
		put_entry(name, '5', "", node, 0);
		free(name);
	}
}

/* What lies below and has no row, as if it had one. */
static bool node_below(const char *path, struct store_node *node, char target[static PATH_MAX])
{
	struct stat st;
	ssize_t n;

	if (!below_look(path, &st))
		return false;
	*node = (struct store_node){ .mode = st.st_mode, .uid = st.st_uid, .gid = st.st_gid, .size = st.st_size, .origin_size = st.st_size, .mtime = st.st_mtim,
		.atime = st.st_atim, .origin = path };
	if (S_ISLNK(st.st_mode)) {
		if ((n = below_link(path, target, PATH_MAX - 1)) < 0)
			return false;
		target[n] = 0;
		node->target = target;
	}
	return true;
}

static const struct verb_entry *entry_of(uint64_t dir, const char *name)
{
	size_t low = 0, high = list->entries_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct verb_entry *at = &list->entries[middle];
		int order = at->dir != dir ? (at->dir < dir ? -1 : 1) : strcmp(at->name, name);

		if (!order)
			return at;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void walk(const char *path, const char *below, uint64_t ino);

static void walk_below(const char *path, const char *below, uint64_t ino)
{
	const char *name;
	int at = below_parent(below, &name), fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (at >= 0)
		close(at);
	while (dir && (entry = readdir(dir))) {
		const struct verb_entry *row = ino ? entry_of(ino, entry->d_name) : NULL;
		char there[PATH_MAX], here[PATH_MAX], target[PATH_MAX];
		struct store_node node;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || (row && row->ino != UINT64_MAX) ||
			snprintf(there, sizeof there, "%s%s%s", below, *below ? "/" : "", entry->d_name) >= (int)sizeof there ||
			snprintf(here, sizeof here, "%s%s%s", path, *path ? "/" : "", entry->d_name) >= (int)sizeof here ||
			!node_below(there, &node, target))
			continue;
		put_node(here, &node);
		if (S_ISDIR(node.mode)) {
			walk(here, there, 0);
			leave_directory(here, &node);
		}
	}
	if (dir)
		closedir(dir);
}

/* What is in a directory: by rows, and what shows through. */
static void walk(const char *path, const char *below, uint64_t ino)
{
	for (size_t i = 0; ino && i < list->entries_count; i++) {
		const struct verb_entry *entry = &list->entries[i];
		struct verb_node *node = entry->dir == ino && entry->path ? (struct verb_node *)verb_node(list, entry->ino) : NULL;

		if (!node)
			continue;
		put_node(entry->path, &node->row);
		/* A damaged state may have a directory in itself. */
		if (S_ISDIR(node->row.mode) && !node->walked) {
			node->walked = true;
			walk(entry->path, node->row.origin, entry->ino);
			leave_directory(entry->path, &node->row);
		}
	}
	if (below)
		walk_below(path, below, ino);
}

static void begin_archive(const struct verb_options *options)
{
	int fd = options->output ? lind_open_file(options->output, NULL, O_WRONLY | O_CREAT | O_TRUNC, 0600) : 1;

	if (fd < 0 || !(out = fdopen(fd, "w")))
		lind_die("%s: %s", options->output ? lind_file_name(options->output) : "standard output", strerror(errno));
}

int verb_export(struct store *store, const struct verb_options *options)
{
	static const char end[1024];
	static struct verb_list all;
	int status = verb_list(store, options, &all);

	if (status)
		return status;
	if (!options->to)
		begin_archive(options);
	else if ((to = open(options->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		lind_die("%s: %s", options->to, strerror(errno));
	list = &all;
	state = store;
	walk("", "", STORE_ROOT);
	if (!out)
		return 0;
	put(end, sizeof end);
	if (fflush(out))
		lind_die("the archive: %s", strerror(errno));
	return 0;
}
