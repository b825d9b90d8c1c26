/* Files from outside at the start, and back to outside at the end. Both are the grate's own view
 * of the files. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../lib/memfs/memfs.h"
#include "host.h"

#define PAIRS 64

struct pair {
	const char *from, *to;
	int fd;   /* the file outside, or -1: a path in the root */
};

static struct pair preloads[PAIRS], dumps[PAIRS];
static size_t preload_count, dump_count;

static const char *remember(const char *text, struct pair *pairs, size_t *count)
{
	char *copy = strdup(text), *equals = copy ? strchr(copy, '=') : NULL;

	if (!equals || equals == copy || !equals[1])
		return "must be two paths with = between them";
	if (*count == PAIRS)
		return "too many of them; name a directory instead";
	*equals = 0;
	pairs[(*count)++] = (struct pair){ copy, equals + 1, -1 };
	return NULL;
}

/* The side of a pair that is outside: a path in the root, or a file that lind-boot has opened. */
static const char *open_side(struct pair *p, const char **side)
{
	const char *inside = lind_path_inside(*side), *value = *side;

	*side = inside ? inside : lind_file_name(value);
	if (!inside && (p->fd = lind_open_file(value, NULL, 0, 0)) < 0)
		return strerror(errno);
	return NULL;
}

/* --preload host=path */
const char *preload(const char *host_and_path)
{
	const char *wrong = remember(host_and_path, preloads, &preload_count);

	if (!wrong && preloads[preload_count - 1].to[0] != '/')
		wrong = "the path inside must begin with /";
	return wrong ? wrong : open_side(&preloads[preload_count - 1], &preloads[preload_count - 1].from);
}

/* --dump path=host */
const char *dump_later(const char *path_and_host)
{
	const char *wrong = remember(path_and_host, dumps, &dump_count);

	if (!wrong && dumps[dump_count - 1].from[0] != '/')
		wrong = "the path inside must begin with /";
	return wrong ? wrong : open_side(&dumps[dump_count - 1], &dumps[dump_count - 1].to);
}

static struct imfs_process us;

static int inside(const char *path, struct imfs_at *at)
{
	int r = imfs_walk(&fs, &us, fs.root, NULL, path, IMFS_NOFOLLOW, at);

	return r ? r : at->outside ? -EXDEV : 0;
}

/* Takes the descriptor over. */
static int load_file(int fd, struct imfs_at *at, const struct stat *st)
{
	static char buffer[IMFS_CHUNK];
	struct imfs_file *f;
	int r;
	int64_t off = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	if ((r = imfs_open(&fs, &us, at, O_CREAT | O_TRUNC | O_WRONLY, st->st_mode & 07777, &f))) {
		close(fd);
		return r;
	}
	while ((got = read(fd, buffer, sizeof buffer)) > 0) {
		int64_t put = imfs_pwrite(&fs, &us, f, buffer, (size_t)got, off);

		if (put < got) {
			r = put < 0 ? (int)put : -ENOSPC;
			break;
		}
		off += put;
	}
	r = got < 0 ? -errno : r;
	f->node->mtime = st->st_mtim;
	imfs_file_drop(&fs, f);
	close(fd);
	return r;
}

static int load(const char *host, const char *path);

static int load_dir(const char *host, const char *path, const struct imfs_at *at, const struct stat *st)
{
	DIR *d = opendir(host);
	struct dirent *e;
	char from[PATH_MAX], to[PATH_MAX];
	int r = 0;

	if (!d)
		return -errno;
	if (!at->node)
		r = imfs_mkdir(&fs, &us, at, st->st_mode & 07777);
	while (!r && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (snprintf(from, sizeof from, "%s/%s", host, e->d_name) >= (int)sizeof from ||
		    snprintf(to, sizeof to, "%s/%s", path, e->d_name) >= (int)sizeof to)
			r = -ENAMETOOLONG;
		else
			r = load(from, to);
	}
	closedir(d);
	return r;
}

static int load(const char *host, const char *path)
{
	char target[PATH_MAX];
	struct imfs_at at;
	struct stat st;
	ssize_t length;
	int r;

	if (lstat(host, &st))
		r = -errno;
	else if ((r = inside(path, &at)))
		;
	else if (S_ISDIR(st.st_mode))
		r = load_dir(host, path, &at, &st);
	else if (S_ISREG(st.st_mode))
		r = load_file(open(host, O_RDONLY | O_CLOEXEC), &at, &st);
	else if (S_ISLNK(st.st_mode)) {
		length = readlink(host, target, sizeof target - 1);
		if (length < 0)
			r = -errno;
		else {
			target[length] = 0;
			r = imfs_symlink(&fs, &us, &at, target);
		}
	} else
		lind_log("%s: not a file, directory or symbolic link: not preloaded", host);
	if (r)
		lind_log("preload %s as %s: %s", host, path, strerror(-r));
	return r;
}

/* A file that lind-boot has opened. */
static int load_opened(const struct pair *p)
{
	struct imfs_at at;
	struct stat st;
	int r = fstat(p->fd, &st) ? -errno : inside(p->to, &at);

	r = r ? r : load_file(p->fd, &at, &st);
	if (r)
		lind_log("preload %s as %s: %s", p->from, p->to, strerror(-r));
	return r;
}

void preload_all(void)
{
	for (size_t i = 0; i < preload_count; i++) {
		char parent[PATH_MAX];
		const char *to = preloads[i].to, *slash = strrchr(to, '/');

		snprintf(parent, sizeof parent, "%.*s", (int)(slash - to), to);
		if (slash != to && make_directories(&us, parent))
			lind_die("preload %s: cannot make %s", preloads[i].from, parent);
		if (preloads[i].fd >= 0 ? load_opened(&preloads[i]) : load(preloads[i].from, to))
			exit(125);
	}
}

static int save(struct imfs_node *n, const char *host);

/* Takes the descriptor over. */
static int save_file(const struct imfs_node *n, int fd)
{
	static const uint8_t zeros[IMFS_CHUNK];
	size_t run;
	int r = 0;

	if (fd < 0)
		return -errno;
	for (int64_t off = 0; off < n->size && !r; off += (int64_t)run) {
		int64_t left = n->size - off;
		const uint8_t *from =
		    imfs_data_run(n, off, left < (int64_t)IMFS_CHUNK ? (size_t)left : IMFS_CHUNK, &run);
		ssize_t put = write(fd, from ? from : zeros, run);

		if (put < 0)
			r = -errno;
		else
			run = (size_t)put;
	}
	/* A file that lind-boot has opened may be a pipe or a terminal. */
	if (!r && !fchmod(fd, n->mode & 07777))
		futimens(fd, (struct timespec[]){ n->atime, n->mtime });
	if (close(fd) && !r)
		r = -errno;
	return r;
}

static int remove_tree(const char *host)
{
	char inner[PATH_MAX];
	struct dirent *e;
	DIR *dir;

	if (!unlink(host) || errno == ENOENT)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || !(dir = opendir(host)))
		return -errno;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    snprintf(inner, sizeof inner, "%s/%s", host, e->d_name) < (int)sizeof inner)
			remove_tree(inner);
	closedir(dir);
	return rmdir(host) ? -errno : 0;
}

static bool has_entry(const struct imfs_node *n, const char *name)
{
	for (const struct imfs_entry *e = n->dir.first; e; e = e->after)
		if (!strcmp(e->name, name))
			return true;
	return false;
}

/* Removes from the host directory the names that are gone here. */
static int remove_others(const struct imfs_node *n, const char *host)
{
	char inner[PATH_MAX];
	struct dirent *e;
	DIR *dir = opendir(host);
	int r = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || has_entry(n, e->d_name))
			continue;
		if (snprintf(inner, sizeof inner, "%s/%s", host, e->d_name) < (int)sizeof inner && remove_tree(inner))
			r = -errno;
	}
	closedir(dir);
	return r;
}

static int save_dir(const struct imfs_node *n, const char *host)
{
	char to[PATH_MAX];
	int r = 0;

	if (mkdir(host, 0700) && errno != EEXIST)
		return -errno;
	r = remove_others(n, host);
	for (const struct imfs_entry *e = n->dir.first; e; e = e->after) {
		int one;

		if (e->node->outside)
			continue;
		if (snprintf(to, sizeof to, "%s/%s", host, e->name) >= (int)sizeof to)
			one = -ENAMETOOLONG;
		else
			one = save(e->node, to);
		r = r ? r : one;
	}
	/* Last: it may take away the right to write. */
	if (chmod(host, n->mode & 07777) && !r)
		r = -errno;
	return r;
}

/* A file of another kind is in the way of one, and a link would lead elsewhere. */
static int make_way(const struct imfs_node *n, const char *host)
{
	struct stat st;

	if (lstat(host, &st))
		return errno == ENOENT ? 0 : -errno;
	return S_ISLNK(st.st_mode) || (st.st_mode & S_IFMT) != (n->mode & S_IFMT) ? remove_tree(host) : 0;
}

static int save(struct imfs_node *n, const char *host)
{
	struct timespec times[] = { n->atime, n->mtime };
	int r = make_way(n, host);

	if (!r && S_ISDIR(n->mode))
		r = save_dir(n, host);
	else if (!r && S_ISREG(n->mode))
		r = save_file(n, open(host, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
	else if (!r && S_ISLNK(n->mode))
		r = symlink(n->target, host) ? -errno : 0;
	else
		return r;
	if (!r && utimensat(AT_FDCWD, host, times, AT_SYMLINK_NOFOLLOW))
		r = -errno;
	if (r)
		lind_log("dump to %s: %s", host, strerror(-r));
	return r;
}

/* Into a file that lind-boot has opened. */
static void save_opened(const struct imfs_node *n, const struct pair *p)
{
	int r = S_ISREG(n->mode) ? save_file(n, p->fd) : -EISDIR;

	if (r == -EISDIR)
		lind_log("dump %s: only a file can be copied outside the root; use root:%s for a place inside", p->from,
		    p->to);
	else if (r)
		lind_log("dump to %s: %s", p->to, strerror(-r));
}

void dump_all(void)
{
	struct imfs_at at;

	for (size_t i = 0; i < dump_count; i++) {
		int r;

		imfs_write_lock();
		r = inside(dumps[i].from, &at);
		r = r ? r : imfs_exists(&at);
		if (r)
			lind_log("dump %s: %s", dumps[i].from, strerror(-r));
		else if (dumps[i].fd >= 0)
			save_opened(at.node, &dumps[i]);
		else
			save(at.node, dumps[i].to);
		imfs_write_unlock();
	}
}
