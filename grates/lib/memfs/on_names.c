/* Names: making, moving and removing them; the working directory. */
#include "memfs.h"

/* In calls that take one path, the argument after it is the mode. */
static int64_t make_dir(const struct lind_call *c, int dir, int path)
{
	struct look l;
	int r = look(c, dir, path, IMFS_NAME_ITSELF, false, &l);

	return r ? look_elsewhere(c, path, r, &l) : done(imfs_mkdir(&fs, &l.client->p, &l.at, lind_arg32(c, path + 1)));
}

int64_t on_mkdir(const struct lind_call *c)
{
	return make_dir(c, -1, 0);
}

int64_t on_mkdirat(const struct lind_call *c)
{
	return make_dir(c, 0, 1);
}

static int64_t make_node(const struct lind_call *c, int dir, int path)
{
	struct look l;
	int r = look(c, dir, path, IMFS_NAME_ITSELF, false, &l);

	return r ? look_elsewhere(c, path, r, &l)
		 : done(imfs_mknod(&fs, &l.client->p, &l.at, lind_arg32(c, path + 1), lind_arg32(c, path + 2)));
}

int64_t on_mknod(const struct lind_call *c)
{
	return make_node(c, -1, 0);
}

int64_t on_mknodat(const struct lind_call *c)
{
	return make_node(c, 0, 1);
}

static int64_t remove_name(const struct lind_call *c, int dir, int path, bool directory)
{
	struct look l;
	int r = look(c, dir, path, IMFS_NAME_ITSELF, false, &l);

	if (r)
		return look_elsewhere(c, path, r, &l);
	return done((directory ? imfs_rmdir : imfs_unlink)(&fs, &l.client->p, &l.at));
}

int64_t on_rmdir(const struct lind_call *c)
{
	return remove_name(c, -1, 0, true);
}

int64_t on_unlink(const struct lind_call *c)
{
	return remove_name(c, -1, 0, false);
}

int64_t on_unlinkat(const struct lind_call *c)
{
	if (lind_arg32(c, 2) & ~AT_REMOVEDIR)
		return -EINVAL;
	return remove_name(c, 0, 1, lind_arg32(c, 2) & AT_REMOVEDIR);
}

static int64_t move(const struct lind_call *c, int dir1, int path1, int dir2, int path2, uint32_t flags)
{
	struct look l1, l2;
	int r = look_two(c, dir1, path1, IMFS_NAME_ITSELF, false, dir2, path2, &l1, &l2);

	if (r)
		return look_two_elsewhere(c, path1, path2, r, &l1, &l2);
	return done(imfs_rename(&fs, &l1.client->p, &l1.at, &l2.at, flags));
}

int64_t on_rename(const struct lind_call *c)
{
	return move(c, -1, 0, -1, 1, 0);
}

int64_t on_renameat(const struct lind_call *c)
{
	return move(c, 0, 1, 2, 3, 0);
}

int64_t on_renameat2(const struct lind_call *c)
{
	return move(c, 0, 1, 2, 3, lind_arg32(c, 4));
}

static int64_t link_to(const struct lind_call *c, int dir1, int path1, int dir2, int path2, uint32_t flags)
{
	struct look l1, l2;
	enum imfs_follow follow = flags & AT_SYMLINK_FOLLOW ? IMFS_FOLLOW : IMFS_NOFOLLOW;
	int r;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	r = look_two(c, dir1, path1, follow, flags & AT_EMPTY_PATH, dir2, path2, &l1, &l2);
	if (r)
		return look_two_elsewhere(c, path1, path2, r, &l1, &l2);
	if ((r = imfs_exists(&l1.at)))
		return done(r);
	return done(imfs_link(&fs, &l1.client->p, l1.at.node, &l2.at));
}

int64_t on_link(const struct lind_call *c)
{
	return link_to(c, -1, 0, -1, 1, 0);
}

int64_t on_linkat(const struct lind_call *c)
{
	return link_to(c, 0, 1, 2, 3, lind_arg32(c, 4));
}

/* The target is text, not a path of ours. */
static int64_t make_link(const struct lind_call *c, int dir, int path)
{
	char target[IMFS_PATH];
	struct look l;
	ssize_t length = lind_read_string(c->args[0], target, sizeof target);
	int r;

	if (length < 0)
		return length;
	r = look(c, dir, path, IMFS_NAME_ITSELF, false, &l);
	return r ? look_elsewhere(c, path, r, &l) : done(imfs_symlink(&fs, &l.client->p, &l.at, target));
}

int64_t on_symlink(const struct lind_call *c)
{
	return make_link(c, -1, 1);
}

int64_t on_symlinkat(const struct lind_call *c)
{
	return make_link(c, 1, 2);
}

static int64_t read_link(const struct lind_call *c, int dir, int path)
{
	char target[IMFS_PATH];
	struct look l;
	uint64_t size = c->args[path + 2].value;
	size_t length;
	int r = look(c, dir, path, IMFS_NOFOLLOW, true, &l);
	int64_t named =
	    r == OUTSIDE ? proc_readlink(c, l.client, l.at.path, c->args[path + 1], c->args[path + 2].value) : 0;

	if (r)
		return named ? named : look_elsewhere(c, path, r, &l);
	if ((r = imfs_exists(&l.at)))
		return done(r);
	if (!S_ISLNK(l.at.node->mode) || !size || size > INT_MAX)
		return done(l.text[0] || !size || size > INT_MAX ? -EINVAL : -ENOENT);
	length = (size_t)l.at.node->size < size ? (size_t)l.at.node->size : (size_t)size;
	memcpy(target, l.at.node->target, length);
	imfs_write_unlock();
	r = lind_write(c->args[path + 1], target, length);
	return r ? r : (int64_t)length;
}

int64_t on_readlink(const struct lind_call *c)
{
	return read_link(c, -1, 0);
}

int64_t on_readlinkat(const struct lind_call *c)
{
	return read_link(c, 0, 1);
}

static int may_enter(const struct imfs_node *n, const struct imfs_process *p)
{
	return S_ISDIR(n->mode) ? imfs_may(n, &p->cred, 1) : -ENOTDIR;
}

/* The kernel went there, or we did: then the kernel's working directory does not matter. */
static int64_t moved_outside(struct client *client, uint64_t cage, int64_t r)
{
	if (r < 0)
		return r;
	imfs_write_lock();
	if (client->cage == cage)
		imfs_set_cwd(&fs, &client->p, NULL, NULL);
	return done(r);
}

int64_t on_chdir(const struct lind_call *c)
{
	struct look l;
	int r = look(c, -1, 0, IMFS_FOLLOW, false, &l);

	if (r)
		return r == OUTSIDE ? moved_outside(l.client, c->target, look_elsewhere(c, 0, r, &l)) : r;
	r = imfs_exists(&l.at);
	r = r ? r : may_enter(l.at.node, &l.client->p);
	if (!r)
		imfs_set_cwd(&fs, &l.client->p, l.at.node, NULL);
	return done(r);
}

int64_t on_fchdir(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;
	int r;

	imfs_write_lock();
	if (!(f = fd_of(client, c->args[0]))) {
		imfs_write_unlock();
		return moved_outside(client, c->args[0].cage, lind_forward(c));
	}
	if (!(r = may_enter(f->node, &client->p)))
		imfs_set_cwd(&fs, &client->p, f->node, NULL);
	return done(r);
}

int64_t on_getcwd(const struct lind_call *c)
{
	struct client *client = client_of(c->target);
	uint64_t size = c->args[1].value;
	char path[IMFS_PATH];
	int r;

	imfs_write_lock();
	if (client->cage != c->target || !client->p.cwd) {
		imfs_write_unlock();
		return lind_forward(c);
	}
	r = imfs_node_path(&fs, client->p.cwd, path, sizeof path);
	imfs_write_unlock();
	if (r < 0)
		return r;
	if (size < (uint64_t)r + 1)
		return -ERANGE;
	return lind_write(c->args[0], path, (size_t)r + 1) ? -EFAULT : r + 1;
}
