/*
 * Unix sockets whose names are files of ours. The kernel knows such a socket by an abstract name,
 * which holds a secret and the file's number; the client sees the path it bound, in every address
 * that comes back.
 */
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "memfs.h"

#define PATH_ROOM 108
#define BOUND     1024  /* how many bound names are remembered; the oldest are forgotten */

struct address {
	uint16_t family;
	char path[PATH_ROOM];
};

static struct {
	uint64_t ino;
	char path[PATH_ROOM + 1];
} bound[BOUND];
static unsigned next_bound;
static char secret[17];

/* The lock is held for writing. */
static void abstract_name(const struct imfs_node *n, struct address *to, uint32_t *length)
{
	uint64_t random;

	if (!secret[0]) {
		if (getrandom(&random, sizeof random, 0) != sizeof random)
			random = (uintptr_t)n;
		snprintf(secret, sizeof secret, "%016llx", (unsigned long long)random);
	}
	memset(to, 0, sizeof *to);
	to->family = AF_UNIX;
	*length = 3 + (uint32_t)snprintf(to->path + 1, PATH_ROOM - 1, "%s%llx", secret, (unsigned long long)n->ino);
}

/* The path in an address, if it has one: its length. */
static int read_path(struct lind_arg arg, uint64_t length, char path[PATH_ROOM + 1])
{
	struct address a;

	if (length <= sizeof a.family || length > sizeof a || lind_read(arg, &a, (size_t)length) || a.family != AF_UNIX)
		return 0;
	memcpy(path, a.path, PATH_ROOM);
	path[length - sizeof a.family] = 0;
	return (int)strlen(path);
}

/* Sends the call on with another address at argument `i`, its length behind it. */
static int64_t forward_to(const struct lind_call *c, int i, const struct address *a, uint32_t length)
{
	struct lind_call changed = *c;

	changed.args[i] = lind_mine(a);
	changed.args[i + 1].value = length;
	return lind_forward(&changed);
}

/* A path that leads outside: 1 with what is to be passed on, if that is another text than the
 * client's; 0, or an error. */
static int outside(int looked, const struct look *l, struct address *a, uint32_t *length)
{
	size_t size = strlen(l->at.path);

	if (looked != OUTSIDE)
		return looked;
	if (!l->at.entered)
		return 0;
	if (size >= PATH_ROOM)
		return -ENAMETOOLONG;
	*a = (struct address){ .family = AF_UNIX };
	memcpy(a->path, l->at.path, size);
	*length = (uint32_t)(sizeof a->family + size + 1);
	return 1;
}

int64_t on_bind(const struct lind_call *c)
{
	char path[PATH_ROOM + 1];
	struct address a;
	struct look l;
	struct imfs_node *n;
	uint32_t length;
	int64_t result;
	int r;

	if (!read_path(c->args[1], c->args[2].value, path))
		return lind_forward(c);
	if ((r = look_text(c, path, IMFS_NAME_ITSELF, &l))) {
		r = outside(r, &l, &a, &length);
		return r < 0 ? r : r ? forward_to(c, 1, &a, length) : lind_forward(c);
	}
	r = imfs_create(&fs, &l.client->p, &l.at, S_IFSOCK | (0777 & ~l.client->p.umask), &n);
	if (r)
		return done(r == -EEXIST ? -EADDRINUSE : r);
	abstract_name(n, &a, &length);
	bound[next_bound].ino = n->ino;
	strcpy(bound[next_bound].path, path);
	next_bound = (next_bound + 1) % BOUND;
	imfs_write_unlock();
	if ((result = forward_to(c, 1, &a, length)) < 0 && !look_text(c, path, IMFS_NAME_ITSELF, &l)) {
		if (l.at.node == n)
			imfs_unlink(&fs, &l.client->p, &l.at);
		imfs_write_unlock();
	}
	return result;
}

/* The address by which the kernel knows a path: 1 with the address to pass on; 0 if that is the
 * client's, or an error. */
static int known_as(const struct lind_call *c, const char *path, struct address *a, uint32_t *length)
{
	struct look l;
	int r;

	if ((r = look_text(c, path, IMFS_FOLLOW, &l)))
		return outside(r, &l, a, length);
	if (!(r = imfs_exists(&l.at)) && !(r = imfs_may(l.at.node, &l.client->p.cred, 2)) && !S_ISSOCK(l.at.node->mode))
		r = -ECONNREFUSED;
	if (r)
		return (int)done(r);
	abstract_name(l.at.node, a, length);
	imfs_write_unlock();
	return 1;
}

/* connect, and sendto with an address. */
static int64_t reach(const struct lind_call *c, int i)
{
	char path[PATH_ROOM + 1];
	struct address a;
	uint32_t length;
	int r;

	if (!read_path(c->args[i], c->args[i + 1].value, path))
		return lind_forward(c);
	r = known_as(c, path, &a, &length);
	return r < 0 ? r : r ? forward_to(c, i, &a, length) : lind_forward(c);
}

/* The name of a message in our memory, which has room for any. */
int address_send(const struct lind_call *c, void *name, uint32_t *length)
{
	char path[PATH_ROOM + 1];
	struct address a;
	int r;

	if (!read_path(lind_mine(name), *length, path))
		return 0;
	if ((r = known_as(c, path, &a, length)) > 0)
		memcpy(name, &a, sizeof a);
	return r;
}

int64_t on_connect(const struct lind_call *c)
{
	return reach(c, 1);
}

int64_t on_sendto(const struct lind_call *c)
{
	return c->args[4].value ? reach(c, 4) : lind_forward(c);
}

/* Whether an address is one of our abstract names: then the path that was bound. */
static bool original(const struct address *a, uint32_t length, char path[PATH_ROOM + 1])
{
	char digits[20] = { 0 };
	uint64_t ino = 0;
	size_t prefix = 1 + sizeof secret - 1, count = length - sizeof a->family - prefix;

	if (!secret[0] || a->family != AF_UNIX || length <= sizeof a->family + prefix || count >= sizeof digits ||
	    a->path[0] || memcmp(a->path + 1, secret, sizeof secret - 1))
		return false;
	memcpy(digits, a->path + prefix, count);
	if (sscanf(digits, "%llx", (unsigned long long *)&ino) != 1)
		return false;
	imfs_read_lock();
	path[0] = 0;
	for (unsigned i = 0; i < BOUND; i++)
		if (bound[i].ino == ino && bound[i].path[0])
			strcpy(path, bound[i].path);
	imfs_read_unlock();
	return true;
}

/* Puts the path where the kernel has put an abstract name. `room` is what the client's buffer
 * holds. */
void address_restore(struct lind_arg address, uint64_t room, struct lind_arg length_at)
{
	struct address a = { 0 };
	char path[PATH_ROOM + 1];
	uint32_t length;
	size_t size;

	if (!address.value || lind_read(length_at, &length, sizeof length) || length <= sizeof a.family ||
	    length > sizeof a || room < length || lind_read(address, &a, length) || !original(&a, length, path))
		return;
	size = strlen(path);
	memset(a.path, 0, sizeof a.path);
	memcpy(a.path, path, size < PATH_ROOM ? size : PATH_ROOM);
	length = (uint32_t)(sizeof a.family + (size < PATH_ROOM ? size + (size > 0) : PATH_ROOM));
	if (!lind_write(address, &a, room < length ? (size_t)room : length))
		lind_write(length_at, &length, sizeof length);
}

static int64_t with_address(const struct lind_call *c, int address, int length)
{
	uint32_t room = 0;
	int64_t result;

	if (c->args[address].value && c->args[length].value)
		lind_read(c->args[length], &room, sizeof room);
	result = lind_forward(c);
	if (result >= 0 && room)
		address_restore(c->args[address], room, c->args[length]);
	return result;
}

/* accept, getsockname, getpeername */
int64_t on_named(const struct lind_call *c)
{
	return with_address(c, 1, 2);
}

int64_t on_recvfrom(const struct lind_call *c)
{
	return with_address(c, 4, 5);
}

/* recvmsg without room for control messages. */
int64_t recvmsg_named(const struct lind_call *c)
{
	uint32_t name[2] = { 0, 0 }; /* the first two fields of struct msghdr: the address and its length */
	int64_t result;

	if (lind_read(c->args[1], name, sizeof name))
		name[0] = 0;
	result = lind_forward(c);
	if (result >= 0 && name[0])
		address_restore((struct lind_arg){ name[0], c->args[1].cage }, name[1], lind_at(c->args[1], 4));
	return result;
}
