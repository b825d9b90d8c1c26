/* Addresses of unix sockets that are paths. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "path_walk.h"

#define SUN_PATH offsetof(struct sockaddr_un, sun_path)

/* An address is a name in a working directory, and there is one for the whole grate. */
static pthread_mutex_t working = PTHREAD_MUTEX_INITIALIZER;

/* The mask of permissions of a client, which no call tells without changing it. -1 if it cannot be known. */
static int umask_of(uint64_t cage)
{
	char name[40], text[1024], *line;
	int64_t fd, length;

	snprintf(name, sizeof name, "/proc/%u/status", (unsigned)cage);
	fd = own(SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)name, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	length = own(SYS_read, (uint64_t)fd, (uintptr_t)text, sizeof text - 1, 0);
	own_close((int)fd);
	if (length < 0)
		return -1;
	text[length] = 0;
	line = strstr(text, "\nUmask:");
	return line ? (int)strtol(line + strlen("\nUmask:"), NULL, 8) : -1;
}

/* Binds to a name in the directory that was found. The socket then is called by that name alone (getsockname). */
static int64_t bind_at(const struct lind_call *c, const struct lind_place *place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(place->name);
	struct lind_call there = *c;
	/* Directory and mask are those of whoever's address it is, as for the kernel. */
	int mask = umask_of(c->args[1].cage);
	int64_t r;

	if (place->object >= 0)
		return -EADDRINUSE;
	if (place->slash)
		return -ENOENT;
	if (mask < 0)
		return -EACCES;
	if (length >= sizeof address.sun_path)
		return -EINVAL;
	memcpy(address.sun_path, place->name, length + 1);
	there.args[1] = lind_mine(&address);
	there.args[2] = number(SUN_PATH + length + 1);
	pthread_mutex_lock(&working);
	own(SYS_umask, (uint64_t)mask, 0, 0, 0);
	r = own(SYS_fchdir, (uint64_t)place->dir, 0, 0, 0);
	if (!r)
		r = lind_forward(&there);
	pthread_mutex_unlock(&working);
	return r;
}

int64_t lind_path_bind(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg)
{
	struct { struct sockaddr_storage address; char end; } a;
	char path[sizeof a];
	uint32_t length = (uint32_t)c->args[2].value;
	struct lind_call copy = *c;
	struct lind_place place;
	int64_t r;

	if (length > sizeof a.address)
		return -EINVAL;
	memset(&a, 0, sizeof a);
	if ((r = lind_read(c->args[1], &a, length)) < 0)
		return r;
	copy.args[1] = lind_mine(&a);
	if (length <= SUN_PATH || length > sizeof(struct sockaddr_un) || a.address.ss_family != AF_UNIX ||
	    !((char *)&a)[SUN_PATH])
		return lind_forward(&copy);
	strcpy(path, (char *)&a + SUN_PATH);
	r = lind_path_walk(view, c->target, (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, c->args[1].cage }, path, LIND_WALK_NAME, &place);
	if (r)
		return r;
	if (decide)
		r = decide(c, LIND_DOES_CREATE, &place, arg);
	if (!r || r == -EEXIST)
		r = bind_at(c, &place);
	lind_place_done(&place);
	return r;
}
