/* Addresses of unix sockets that are paths. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "walk.h"

#define SUN_PATH offsetof(struct sockaddr_un, sun_path)

/* A call with an address has no directory argument: it is made by the grate on itself, with the
 * client's socket. There is one working directory for the whole grate. */
static pthread_mutex_t working = PTHREAD_MUTEX_INITIALIZER;

/* The mask of permissions of a client, which no call tells without changing it. -1 if it cannot
 * be known. */
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

/* Gives the file that the grate made to the client, unless another file has taken its place. A
 * directory may have given it its group. */
static void hand_over(uint64_t target, const struct lind_place *place)
{
	uint32_t uid = lind_client_file_id(target, false), gid = lind_client_file_id(target, true);
	uint32_t own_uid = lind_client_file_id(lind_self_, false), own_gid = lind_client_file_id(lind_self_, true);
	struct stat st;
	int fd;

	if (uid == own_uid && gid == own_gid)
		return;
	fd = own_look(place->dir, place->name, 0);
	if (fd >= 0 && !own(SYS_fstat, (uint64_t)fd, (uintptr_t)&st, 0, 0) && S_ISSOCK(st.st_mode) &&
	    st.st_uid == own_uid && st.st_nlink == 1)
		lind_import_syscall(SYS_fchownat, (uint64_t)fd, (uintptr_t)"", uid,
		    st.st_gid == own_gid ? gid : UINT32_MAX, AT_EMPTY_PATH, 0);
	own_close(fd);
}

static int64_t make_here(const struct lind_call *c)
{
	return lind_call(c->nr, lind_self_, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], c->args[5]);
}

/* Writes a name as an address: with the NUL if it fits. Its size, or 0 if even the name does not
 * fit. */
static socklen_t spell(struct sockaddr_un *address, const char *name)
{
	size_t length = strlen(name);

	if (length > sizeof address->sun_path)
		return 0;
	memcpy(address->sun_path, name, length);
	return SUN_PATH + length + (length < sizeof address->sun_path);
}

/* Binds to a name in the directory that was found. The socket then is called by that name alone
 * (getsockname). */
static int64_t bind_at(const struct lind_call *c, const struct lind_place *place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size;
	struct lind_call there = *c;
	int mask = umask_of(c->target);
	int64_t r;

	if (place->object >= 0)
		return -EADDRINUSE;
	if (place->slash)
		return -ENOENT;
	if (mask < 0)
		return -EACCES;
	if (!(size = spell(&address, place->name)))
		return -EINVAL;
	if ((r = lind_client_may(c->target, place->dir, W_OK | X_OK)))
		return r;
	there.args[1] = lind_mine(&address);
	there.args[2] = number(size);
	pthread_mutex_lock(&working);
	own(SYS_umask, (uint64_t)mask, 0, 0, 0);
	r = own(SYS_fchdir, (uint64_t)place->dir, 0, 0, 0);
	if (!r)
		r = make_here(&there);
	pthread_mutex_unlock(&working);
	if (!r)
		hand_over(c->target, place);
	return r;
}

/* A copy of the address that argument `at` is. 1 if it is a path, which is then in `path`. */
static int64_t copy_address(
    const struct lind_call *c, int at, struct sockaddr_storage *to, char path[sizeof(struct sockaddr_un)])
{
	uint32_t length = lind_arg32(c, at + 1);
	int64_t r;

	memset(to, 0, sizeof *to);
	if (!c->args[at].value)
		return 0;
	if (length > sizeof *to)
		return -EINVAL;
	if ((r = lind_read(c->args[at], to, length)) < 0)
		return r;
	if (length <= SUN_PATH || length > sizeof(struct sockaddr_un) || to->ss_family != AF_UNIX ||
	    !((char *)to)[SUN_PATH])
		return 0;
	memcpy(path, (char *)to + SUN_PATH, sizeof(struct sockaddr_un) - SUN_PATH);
	path[sizeof(struct sockaddr_un) - SUN_PATH] = 0;
	return 1;
}

/* The call with the copy, also for an address without a path: the grate has looked at it. */
static int64_t forward_copy(const struct lind_call *c, int at, const struct sockaddr_storage *address)
{
	struct lind_call copy = *c;

	if (copy.args[at].value)
		copy.args[at] = lind_mine(address);
	return lind_forward(&copy);
}

int64_t lind_path_bind(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg)
{
	struct sockaddr_storage address;
	char path[sizeof(struct sockaddr_un)];
	struct lind_place place;
	int64_t r = copy_address(c, 1, &address, path);

	if (r < 1)
		return r < 0 ? r : forward_copy(c, 1, &address);
	r = lind_path_walk(
	    view, c->target, (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, c->target }, path, LIND_WALK_NAME, &place);
	if (r)
		return r;
	if (decide)
		r = decide(c, LIND_DOES_CREATE, &place, arg);
	if (!r || r == -EEXIST)
		r = bind_at(c, &place);
	lind_place_done(&place);
	return r;
}

/* Waits a moment, as the client, for room at the other end. */
static int64_t a_moment(const struct lind_call *c)
{
	struct lind_arg none = { 0, c->target };

	return lind_call(SYS_poll, c->target, none, none, number(1), none, none, none);
}

/*
 * Makes the call with a name in the grate's working directory, and without waiting while that is
 * held. A file found by a descriptor, as another grate names the files it has found, is named by
 * our descriptor.
 */
static int64_t reach_at(const struct lind_call *c, int at, const struct lind_place *place, bool sends)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size;
	struct lind_arg none = { 0, c->target };
	struct lind_call there = *c;
	int64_t flags = lind_call(SYS_fcntl, c->target, c->args[0], number(F_GETFL), none, none, none, none), r;
	bool waits = flags >= 0 && !(flags & O_NONBLOCK) && !(sends && c->args[3].value & MSG_DONTWAIT);
	char found[40];

	if (flags < 0)
		return flags;
	snprintf(found, sizeof found, "/proc/self/fd/%d", place->object);
	if (!(size = spell(&address, place->dir < 0 ? found : place->name)))
		return -EINVAL;
	there.args[at] = lind_mine(&address);
	there.args[at + 1] = number(size);
	if (sends)
		there.args[3].value |= MSG_DONTWAIT;
	do {
		pthread_mutex_lock(&working);
		if (!sends && waits)
			lind_call(SYS_fcntl, c->target, c->args[0], number(F_SETFL),
			    number((uint64_t)flags | O_NONBLOCK), none, none, none);
		r = place->dir < 0 ? 0 : own(SYS_fchdir, (uint64_t)place->dir, 0, 0, 0);
		if (!r)
			r = make_here(&there);
		if (!sends && waits)
			lind_call(SYS_fcntl, c->target, c->args[0], number(F_SETFL), number((uint64_t)flags), none,
			    none, none);
		pthread_mutex_unlock(&working);
		if (r != -EAGAIN || !waits)
			break;
		r = a_moment(c);
	} while (!r);
	return r;
}

int64_t lind_path_reach(const struct lind_call *c, const struct lind_view *view)
{
	bool sends = c->nr == SYS_sendto;
	int at = sends ? 4 : 1;
	struct sockaddr_storage address;
	char path[sizeof(struct sockaddr_un)];
	struct lind_place place;
	int64_t r = copy_address(c, at, &address, path);

	if (r < 1)
		return r < 0 ? r : forward_copy(c, at, &address);
	r = lind_path_walk(view, c->target, (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, c->target }, path,
	    LIND_WALK_FOLLOW, &place);
	if (r)
		return r;
	if (place.object < 0)
		r = -ENOENT;
	else if (!(r = lind_client_may(c->target, place.object, W_OK)))
		r = !S_ISSOCK(place.st.st_mode) ? -ECONNREFUSED : reach_at(c, at, &place, sends);
	lind_place_done(&place);
	return r;
}
