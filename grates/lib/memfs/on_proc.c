/* The links of /proc for descriptors and directories of ours, where the kernel would show the
 * file that represents them. */
#include <stdio.h>
#include "memfs.h"

#define DELETED " (deleted)"

/* The client's file that an outside path in /proc names. The lock is held. */
static struct imfs_file *named(const struct client *client, const char *path, const char *folder)
{
	int64_t fd = imfs_magic_fd(&client->p, path, folder);

	return fd < 0 ? NULL : imfs_fd(&client->p.fds, (uint64_t)fd);
}

/* The text of a link in /proc that leads to a node. A node without a name has a number, as a
 * pipe has. */
static int64_t name_of(struct imfs_node *n, char *to, size_t size)
{
	const struct imfs_entry *e = S_ISDIR(n->mode) ? NULL : n->names;
	struct imfs_node *dir;
	int64_t r;

	/* The one that it has had longest. */
	while (e && e->other)
		e = e->other;
	dir = e ? e->dir : n;
	r = e || S_ISDIR(n->mode) ? imfs_node_path(&fs, dir, to, size) : -ENOENT;
	if (r == -ENOENT)
		return snprintf(to, size, "imfs:[%llu]%s", (unsigned long long)n->ino, n->nlink ? "" : DELETED);
	if (r < 0 || !e)
		return r;
	return r + snprintf(to + r, size - (size_t)r, "%s%s", to[1] ? "/" : "", e->name);
}

/* readlink(2) of such a link: what it says, or 0 if the path leads to none of ours. */
int64_t proc_readlink(
    const struct lind_call *c, const struct client *client, const char *path, struct lind_arg to, uint64_t size)
{
	char name[IMFS_PATH + IMFS_NAME + 2];
	struct imfs_node *n = NULL;
	struct imfs_file *f;
	int64_t r;

	imfs_write_lock();
	if (client->cage == c->target)
		n = (f = named(client, path, "fd/"))   ? f->node
		    : imfs_magic_cwd(&client->p, path) ? client->p.cwd
						       : NULL;
	r = n && !n->watcher ? name_of(n, name, sizeof name) : 0;
	imfs_write_unlock();
	if (r <= 0)
		return r;
	if (!size || size > INT_MAX)
		return -EINVAL;
	r = (uint64_t)r < size ? r : (int64_t)size;
	return lind_write(to, name, (size_t)r) ? -EFAULT : r;
}

/* The permissions of such a link say how the file is open. 0: it is none of ours. */
uint32_t proc_link_mode(const struct lind_call *c, const struct client *client, const char *path)
{
	const struct imfs_file *f;
	uint32_t mode = 0;

	imfs_read_lock();
	if (client->cage == c->target && (f = named(client, path, "fd/"))) {
		uint32_t access = f->flags & O_PATH ? 3 : f->flags & O_ACCMODE;

		mode = S_IFLNK | (access == O_RDONLY || access == O_RDWR ? 0500 : 0) |
		    (access == O_WRONLY || access == O_RDWR ? 0300 : 0);
	}
	imfs_read_unlock();
	return mode;
}

/* open(2) of /proc/self/fdinfo/N: a file of its own, without a name. 1: it is none of ours. */
int proc_info(
    const struct lind_call *c, struct client *client, const char *path, uint32_t flags, struct imfs_file **made)
{
	char text[128];
	struct imfs_process root = { 0 };
	struct imfs_file *f, *writer;
	struct imfs_node *n;
	int length;

	imfs_write_lock();
	if (client->cage != c->target || !(f = named(client, path, "fdinfo/")))
		return (int)done(1);
	if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_TRUNC | O_DIRECTORY))
		return (int)done(flags & O_DIRECTORY ? -ENOTDIR : -EACCES);
	length = snprintf(text, sizeof text, "pos:\t%lld\nflags:\t0%o\nmnt_id:\t1\nino:\t%llu\n", (long long)f->pos,
	    f->flags | (client->p.fds.cloexec[imfs_magic_fd(&client->p, path, "fdinfo/")] ? O_CLOEXEC : 0),
	    (unsigned long long)f->node->ino);
	if (!(n = imfs_node_new(&fs, S_IFREG | 0400, &client->p.cred, NULL)))
		return (int)done(-ENOMEM);
	if (!(writer = imfs_file_new(&fs, n, O_WRONLY)) ||
	    imfs_pwrite(&fs, &root, writer, text, (size_t)length, 0) != length ||
	    !(*made = imfs_file_new(&fs, n, flags))) {
		if (writer)
			imfs_file_drop(&fs, writer);
		else
			imfs_node_settle(&fs, n);
		return (int)done(-ENOMEM);
	}
	imfs_file_drop(&fs, writer);
	return (int)done(0);
}
