/* Extended attributes, each call by a path, by a path that is not followed and by a descriptor. */
#include <stdlib.h>
#include "memfs.h"

enum of { BY_PATH, BY_LINK, BY_FD };

/* The file whose attributes a call is about, with the write lock held. NULL: `*r` is the result
 * to return. */
static struct imfs_node *subject(const struct lind_call *c, enum of of, struct client **client, int64_t *r)
{
	struct imfs_file *f;
	struct look l;
	int looked;

	if (of == BY_FD) {
		*client = client_of(c->args[0].cage);
		imfs_write_lock();
		if (!(f = fd_of(*client, c->args[0]))) {
			imfs_write_unlock();
			*r = lind_forward(c);
			return NULL;
		}
		*r = f->flags & O_PATH ? done(-EBADF) : 0;
		return *r ? NULL : f->node;
	}
	if ((looked = look(c, -1, 0, of == BY_PATH ? IMFS_FOLLOW : IMFS_NOFOLLOW, false, &l))) {
		*r = look_elsewhere(c, 0, looked, &l);
		return NULL;
	}
	*client = l.client;
	if ((looked = imfs_exists(&l.at))) {
		*r = done(looked);
		return NULL;
	}
	*r = 0;
	return l.at.node;
}

/* The name in argument 1. 0 or an errno. */
static int read_name(const struct lind_call *c, char name[IMFS_NAME + 2])
{
	ssize_t length = lind_read_string(c->args[1], name, IMFS_NAME + 2);

	return length == -ENAMETOOLONG ? -ERANGE : length < 0 ? (int)length : 0;
}

/* Both, for calls that need no more than that. */
static struct imfs_node *subject_by_name(
    const struct lind_call *c, enum of of, char name[IMFS_NAME + 2], struct client **client, int64_t *r)
{
	int wrong = read_name(c, name);
	struct imfs_node *n = subject(c, of, client, r);

	if (n && wrong) {
		*r = done(wrong);
		return NULL;
	}
	return n;
}

static int64_t set(const struct lind_call *c, enum of of)
{
	uint64_t size = c->args[3].value;
	char name[IMFS_NAME + 2], *value = NULL;
	struct client *client;
	struct imfs_node *n;
	int wrong = read_name(c, name);
	int64_t r;

	if (!wrong && size > IMFS_XATTR)
		wrong = -E2BIG;
	if (!wrong && size && !(value = malloc((size_t)size)))
		wrong = -ENOMEM;
	if (!wrong && size)
		wrong = lind_read(c->args[2], value, (size_t)size);
	if ((n = subject(c, of, &client, &r)))
		r = done(wrong ? wrong
			       : imfs_setxattr(&fs, n, &acting(c, client)->p.cred, name, value, (size_t)size,
				     (int)lind_arg32(c, 4)));
	free(value);
	return r;
}

static int64_t get(const struct lind_call *c, enum of of)
{
	uint64_t size = c->args[3].value;
	char name[IMFS_NAME + 2];
	const void *value;
	struct client *client;
	struct imfs_node *n;
	int64_t r;

	if (!(n = subject_by_name(c, of, name, &client, &r)))
		return r;
	r = imfs_getxattr(&fs, n, &acting(c, client)->p.cred, name, &value);
	if (r > 0 && size && (uint64_t)r > size)
		r = -ERANGE;
	if (r > 0 && size && lind_write(c->args[2], value, (size_t)r))
		r = -EFAULT;
	return done(r);
}

static int64_t list(const struct lind_call *c, enum of of)
{
	uint64_t size = c->args[2].value < IMFS_XATTR ? c->args[2].value : IMFS_XATTR;
	struct client *client;
	struct imfs_node *n;
	char *names = NULL;
	int64_t r;

	if (!(n = subject(c, of, &client, &r)))
		return r;
	if (size && !(names = malloc((size_t)size)))
		return done(-ENOMEM);
	r = imfs_listxattr(&fs, n, &acting(c, client)->p.cred, names, (size_t)size);
	imfs_write_unlock();
	if (r > 0 && size && lind_write(c->args[1], names, (size_t)r))
		r = -EFAULT;
	free(names);
	return r;
}

static int64_t take_away(const struct lind_call *c, enum of of)
{
	char name[IMFS_NAME + 2];
	struct client *client;
	struct imfs_node *n;
	int64_t r;

	if (!(n = subject_by_name(c, of, name, &client, &r)))
		return r;
	return done(imfs_removexattr(&fs, n, &acting(c, client)->p.cred, name));
}

#define THREE(name, does) \
	int64_t on_##name(const struct lind_call *c) \
	{ \
		return does(c, BY_PATH); \
	} \
	int64_t on_l##name(const struct lind_call *c) \
	{ \
		return does(c, BY_LINK); \
	} \
	int64_t on_f##name(const struct lind_call *c) \
	{ \
		return does(c, BY_FD); \
	}

THREE(setxattr, set)
THREE(getxattr, get)
THREE(listxattr, list)
THREE(removexattr, take_away)
