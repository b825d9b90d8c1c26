/*
 * Unix sockets. A path is walked here, judged by where it leads, and the call is made on what was
 * found: through a descriptor of the grate's own, which no client can touch. A link that is changed
 * meanwhile changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <lind/paths.h>
#include <stdio.h>
#include <string.h>
#include "net.h"

/* Where it leads, in the address; what was found is to be let go of by lind_place_done. */
static int64_t find(const struct lind_call *call, struct address *a, struct lind_place *place)
{
	struct lind_arg cwd = { (uint64_t)(int64_t)AT_FDCWD, call->target };
	int64_t r = lind_path_walk(NULL, call->target, cwd, a->path, LIND_WALK_FOLLOW, place);

	if (r < 0)
		return r;
	if (place->object < 0)
		r = -ENOENT;
	else if (strlen(place->path) >= sizeof a->path)
		r = -ENAMETOOLONG;
	else if (!(r = lind_client_may(call->target, place->object, W_OK))) {
		strcpy(a->path, place->path);
		a->path_length = (uint8_t)strlen(a->path);
		return 0;
	}
	lind_place_done(place);
	return r;
}

/* The address by which the grate itself reaches the socket that was found. */
static socklen_t by_descriptor(const struct lind_place *place, struct sockaddr_un *to)
{
	memset(to, 0, sizeof *to);
	to->sun_family = AF_UNIX;
	snprintf(to->sun_path, sizeof to->sun_path, "/proc/self/fd/%d", place->object);
	return sizeof *to;
}

static int64_t abstract(
    struct client *c, const struct lind_call *call, struct lind_arg pinned, enum verb verb, int at, struct address *a)
{
	struct lind_call own = *call;
	struct sockaddr_storage s;
	socklen_t length = address_write(a, &s);
	int64_t r = judge(c, call, verb, UNIX, a);

	own.args[0] = pinned;
	own.args[at] = lind_mine(&s);
	own.args[at + 1].value = length;
	return r < 0 ? r : lind_forward(&own);
}

int64_t unix_connect(struct client *c, const struct lind_call *call, struct lind_arg pinned, struct address *a)
{
	struct lind_arg none = { 0, lind_self() };
	struct sockaddr_un un;
	struct lind_place place;
	socklen_t length;
	int64_t r;

	if (a->abstract)
		return abstract(c, call, pinned, CONNECT, 1, a);
	if ((r = find(call, a, &place)) < 0)
		return r;
	length = by_descriptor(&place, &un);
	if ((r = judge(c, call, CONNECT, UNIX, a)) == 0)
		r = lind_call(SYS_connect, lind_self(), call->args[0], lind_mine(&un),
		    (struct lind_arg){ length, lind_self() }, none, none, none);
	lind_place_done(&place);
	return r;
}

int64_t unix_send(
    struct client *c, const struct lind_call *call, struct lind_arg fd, struct lind_message *m, struct address *a)
{
	struct lind_arg none = { 0, lind_self() };
	struct sockaddr_un un;
	struct lind_place place;
	socklen_t length;
	int64_t r;

	if (a->abstract && !m)
		return abstract(c, call, fd, SEND, 4, a);
	if (a->abstract)
		return (r = judge(c, call, SEND, UNIX, a)) < 0 ? r : lind_message_pass(m, call, call->args[2].value);
	if ((r = find(call, a, &place)) < 0)
		return r;
	length = by_descriptor(&place, &un);
	if ((r = judge(c, call, SEND, UNIX, a)) == 0 && m) {
		m->own.msg_name = &un;
		m->own.msg_namelen = length;
		r = lind_call(SYS_sendmsg, lind_self(), call->args[0], lind_mine(&m->own),
		    (struct lind_arg){ call->args[2].value, lind_self() }, none, none, none);
	} else if (r == 0)
		r = lind_call(SYS_sendto, lind_self(), call->args[0], call->args[1], call->args[2], call->args[3],
		    lind_mine(&un), (struct lind_arg){ length, lind_self() });
	lind_place_done(&place);
	return r;
}

struct binding {
	struct client *c;
	struct address *a;
};

static int decide(const struct lind_call *call, unsigned effect, const struct lind_place *place, void *arg)
{
	struct binding *b = arg;

	(void)effect;
	if (strlen(place->path) >= sizeof b->a->path)
		return -ENAMETOOLONG;
	strcpy(b->a->path, place->path);
	b->a->path_length = (uint8_t)strlen(b->a->path);
	return (int)judge(b->c, call, BIND, UNIX, b->a);
}

int64_t unix_bind(struct client *c, const struct lind_call *call, struct lind_arg pinned, struct address *a)
{
	struct lind_arg cwd = { (uint64_t)(int64_t)AT_FDCWD, call->target };
	struct binding b = { c, a };
	struct lind_call own = *call;
	struct sockaddr_storage s;
	struct lind_place place;
	int64_t r;

	if (a->abstract)
		return abstract(c, call, pinned, BIND, 1, a);
	/* Where a relative path starts is the client's; from here on it is an absolute one of ours. */
	if ((r = lind_path_walk(NULL, call->target, cwd, a->path, LIND_WALK_NAME, &place)) < 0)
		return r;
	r = strlen(place.path) >= sizeof a->path - 1 ? -ENAMETOOLONG : 0;
	if (r == 0) {
		strcpy(a->path, place.path);
		a->path_length = (uint8_t)strlen(a->path);
	}
	lind_place_done(&place);
	if (r < 0)
		return r;
	own.args[0] = pinned;
	own.args[2].value = address_write(a, &s);
	own.args[1] = lind_mine(&s);
	return lind_path_bind(&own, NULL, decide, &b);
}
