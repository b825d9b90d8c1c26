/* Extended attributes: xattr(7). Attributes for administrators and security modules are kept, for
 * callers with CAP_SYS_ADMIN, and have no effect. There are no capabilities of files, and no access
 * lists. */
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "watch.h"

#define XATTR_COST(name, size) (sizeof(struct imfs_xattr) + (name) + 1 + (size))

static bool starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* The answer for security.* and trusted.*. Everybody may read the first. Setting a file's
 * capabilities takes CAP_SETFCAP, which no cage has. */
static int may_of_administrators(const struct imfs_cred *cred, const char *name, int mask)
{
	bool trusted = starts(name, "trusted.");

	if (!(cred->caps & IMFS_SYS_ADMIN) && (trusted || (mask & W_OK)))
		return mask & W_OK ? -EPERM : -ENODATA;
	if ((mask & W_OK) && !strcmp(name, "security.capability"))
		return -EPERM;
	return strchr(name, '.')[1] ? 0 : -EINVAL;
}

/*
 * Whether an attribute of this name may be read or written, in Linux's order: the rights first,
 * then whether there is such a kind. Only files and directories have those of users; in a sticky
 * directory that anybody may write to, they are its owner's.
 */
static int may(const struct imfs_node *n, const struct imfs_cred *cred, const char *name, int mask)
{
	size_t length = strlen(name);
	bool user = starts(name, "user.");
	int r;

	if (!length || length > IMFS_NAME)
		return -ERANGE;
	if (starts(name, "security.") || starts(name, "trusted."))
		return may_of_administrators(cred, name, mask);
	if (user && !S_ISREG(n->mode) && !S_ISDIR(n->mode))
		return mask & W_OK ? -EPERM : -ENODATA;
	if (user && S_ISDIR(n->mode) && (n->mode & S_ISVTX) && (mask & W_OK) && !imfs_owns(n, cred))
		return -EPERM;
	if ((r = imfs_may(n, cred, mask)))
		return r;
	return !user ? -EOPNOTSUPP : length > 5 ? 0 : -EINVAL;
}

static int learn(struct imfs *fs, struct imfs_node *n)
{
	return n->under ? imfs_below->xattrs(fs, n) : 0;
}

static struct imfs_xattr **find(struct imfs_node *n, const char *name)
{
	struct imfs_xattr **at = &n->xattrs;

	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	return at;
}

static const char *value_of(const struct imfs_xattr *x)
{
	return x->name + strlen(x->name) + 1;
}

static void forget(struct imfs *fs, struct imfs_xattr **at)
{
	struct imfs_xattr *x = *at;

	*at = x->next;
	fs->used -= XATTR_COST(strlen(x->name), x->size);
	free(x);
}

int imfs_xattr_add(struct imfs *fs, struct imfs_node *n, const char *name, const void *value, size_t size)
{
	size_t length = strlen(name);
	struct imfs_xattr *x;

	if (imfs_charge(fs, XATTR_COST(length, size)))
		return -ENOSPC;
	if (!(x = malloc(XATTR_COST(length, size)))) {
		fs->used -= XATTR_COST(length, size);
		return -ENOMEM;
	}
	x->size = (uint32_t)size;
	memcpy(x->name, name, length + 1);
	memcpy(x->name + length + 1, value, size);
	x->next = n->xattrs;
	n->xattrs = x;
	return 0;
}

int imfs_setxattr(struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, const char *name,
    const void *value, size_t size, int flags)
{
	struct imfs_xattr **old;
	int r;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (size > IMFS_XATTR)
		return -E2BIG;
	if ((r = may(n, cred, name, W_OK)) || (r = learn(fs, n)))
		return r;
	old = find(n, name);
	if (*old && (flags & XATTR_CREATE))
		return -EEXIST;
	if (!*old && (flags & XATTR_REPLACE))
		return -ENODATA;
	/* The new one first, since only this step can fail. If it replaces another, that is looked up
	 * again behind it. */
	if ((r = imfs_xattr_add(fs, n, name, value, size)))
		return r;
	for (old = &n->xattrs->next; *old; old = &(*old)->next)
		if (!strcmp((*old)->name, name)) {
			forget(fs, old);
			break;
		}
	n->ctime = imfs_now();
	imfs_changed(n);
	imfs_tell(n, IN_ATTRIB);
	return 0;
}

int64_t imfs_getxattr(
    struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, const char *name, const void **value)
{
	const struct imfs_xattr *x;
	int r;

	if ((r = may(n, cred, name, R_OK)) || (r = learn(fs, n)))
		return r;
	if (!(x = *find(n, name)))
		return -ENODATA;
	*value = value_of(x);
	return x->size;
}

int imfs_removexattr(struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, const char *name)
{
	struct imfs_xattr **at;
	int r;

	if ((r = may(n, cred, name, W_OK)) || (r = learn(fs, n)))
		return r;
	at = find(n, name);
	if (!*at)
		return -ENODATA;
	forget(fs, at);
	n->ctime = imfs_now();
	imfs_changed(n);
	imfs_tell(n, IN_ATTRIB);
	return 0;
}

int64_t imfs_listxattr(struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, char *to, size_t size)
{
	size_t used = 0;
	int r = learn(fs, n);

	if (r)
		return r;

	for (const struct imfs_xattr *x = n->xattrs; x; x = x->next) {
		size_t length = strlen(x->name) + 1;

		if (starts(x->name, "trusted.") && !(cred->caps & IMFS_SYS_ADMIN))
			continue;
		if (size) {
			if (used + length > size)
				return size < IMFS_XATTR ? -ERANGE : -E2BIG;
			memcpy(to + used, x->name, length);
		}
		used += length;
	}
	return used > IMFS_XATTR ? -E2BIG : (int64_t)used;
}

void imfs_xattr_free(struct imfs *fs, struct imfs_node *n)
{
	while (n->xattrs)
		forget(fs, &n->xattrs);
}
