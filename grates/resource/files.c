/*
 * Open descriptors. A byte for each number says whether it counts. Numbers are made by many calls,
 * which may wait and are not locked; they go by few, which hold the client's lock: so a number that
 * is open counts, whatever threads do at once. A number that counts and is not open is found when
 * the limit is hit, and then counts no more.
 *
 * A descriptor in a message that nobody has received is open as well. The kernel knows how many a
 * client has in flight; it is asked before more are sent, and when the limit is hit. Descriptors
 * that a client leaves in flight count for its parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <lind/fds.h>
#include <lind/grate.h>
#include <lind/transfer.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "files.h"
#include "limits.h"

#define MOST_FILES (1u << 20)
/* Numbers that the first program is asked about. */
#define FIRST_FILES 1024

LIND_HANDLE_OF(files, alters, fcntl);
LIND_HANDLE_OF(files, observes, close);
LIND_HANDLE_OF(files, observes, close_range);

/* A number may mean another file from now on: see use.h. */
static void changes(struct client *c)
{
	__atomic_fetch_add(&c->changes, 1, __ATOMIC_SEQ_CST);
}

static bool is_open(struct client *c, uint32_t fd)
{
	return lind_call_plain(SYS_fcntl, c->cage, fd, F_GETFD, 0, 0) >= 0;
}

/* The lock is held. */
static bool room(struct client *c, uint32_t fd)
{
	uint32_t size = c->files_room ? c->files_room : 64;
	uint8_t *files;

	if (fd < c->files_room)
		return true;
	if (fd >= MOST_FILES)
		return false;
	while (size <= fd)
		size *= 2;
	if (!(files = realloc(c->files, size)))
		return false;
	memset(files + c->files_room, 0, size - c->files_room);
	c->files = files;
	c->files_room = size;
	return true;
}

/* The lock is held. Whether the number did not count before. */
static bool set(struct client *c, uint32_t fd)
{
	if (!room(c, fd) || c->files[fd])
		return false;
	c->files[fd] = 1;
	return true;
}

/* The lock is held. */
static void clear(struct client *c, uint32_t fd)
{
	if (fd >= c->files_room || !c->files[fd])
		return;
	c->files[fd] = 0;
	give_back(c, FILES, 1);
}

static uint64_t in_flight(uint64_t cage)
{
	int64_t n = lind_call_plain(SYS_in_flight, cage, 0, 0, 0, 0);

	return n > 0 ? (uint64_t)n : 0;
}

/* The lock is held. */
static void look_in_flight(struct client *c)
{
	uint64_t now = in_flight(c->cage);

	if (now > c->parked) {
		__atomic_fetch_add(&c->used[FILES], now - c->parked, __ATOMIC_RELAXED);
		__atomic_fetch_add(&tree_used[FILES], now - c->parked, __ATOMIC_RELAXED);
		c->parked = now;
	} else if (now + c->sending < c->parked) {
		give_back(c, FILES, c->parked - now - c->sending);
		c->parked = now + c->sending;
	}
}

static void recount_in_flight(struct client *c, void *unused)
{
	(void)unused;
	if (pthread_mutex_trylock(&c->lock))
		return;
	look_in_flight(c);
	pthread_mutex_unlock(&c->lock);
}

/* Descriptors left in flight by clients without a parent among the clients: this cage has them. */
static void recount_left(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t left;
	uint64_t now;

	pthread_mutex_lock(&lock);
	now = in_flight(lind_self());
	/* Modulo 2^64. */
	__atomic_fetch_add(&tree_used[FILES], now - left, __ATOMIC_RELAXED);
	left = now;
	pthread_mutex_unlock(&lock);
}

static void recount(struct client *c, void *unused)
{
	(void)unused;
	if (pthread_mutex_trylock(&c->lock))
		return;
	look_in_flight(c);
	for (uint32_t fd = 0; fd < c->files_room; fd++)
		if (c->files[fd] && !is_open(c, fd))
			clear(c, fd);
	pthread_mutex_unlock(&c->lock);
}

void files_look(void)
{
	each_client(recount, NULL);
}

int64_t file_reserve(struct client *c, uint64_t n, const char *by)
{
	enum scope scope;

	if (reserve(c, FILES, n, &scope))
		return 0;
	if (scope == EACH)
		recount(c, NULL);
	else
		files_look();
	return reserve(c, FILES, n, &scope) ? 0 : hit(c, scope, FILES, n, by);
}

void file_opened(struct client *c, int fd)
{
	bool new;

	pthread_mutex_lock(&c->lock);
	new = set(c, (uint32_t)fd);
	pthread_mutex_unlock(&c->lock);
	if (!new)
		give_back(c, FILES, 1);
}

uint64_t files_highest(struct client *c)
{
	uint64_t highest;

	pthread_mutex_lock(&c->lock);
	for (highest = c->files_room; highest && !c->files[highest - 1]; highest--)
		;
	pthread_mutex_unlock(&c->lock);
	return highest;
}

static int own;

static void note_own(int fd)
{
	own = fd;
}

void files_begun(struct client *c)
{
	/* A program that we have started has those of our descriptors that it inherited, and no others. */
	bool ours = limited(FILES) && lind_call_plain(SYS_getppid, c->cage, 0, 0, 0, 0) == getpid();

	own = 0;
	if (ours)
		lind_each_own_fd(FIRST_FILES, note_own);
	files_found(c, ours ? (uint64_t)own : FIRST_FILES - 1, 0);
}

void files_found(struct client *c, uint64_t highest, uint64_t reserved)
{
	uint64_t n = 0;

	if (!limited(FILES))
		return;
	pthread_mutex_lock(&c->lock);
	for (uint32_t fd = 0; fd <= highest; fd++)
		if (is_open(c, fd))
			n += set(c, fd);
	pthread_mutex_unlock(&c->lock);
	__atomic_fetch_add(&c->used[FILES], n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tree_used[FILES], n - reserved, __ATOMIC_RELAXED);
	note_peak(FILES);
}

void files_leave(struct client *c)
{
	__atomic_fetch_sub(&tree_used[FILES], c->used[FILES], __ATOMIC_RELAXED);
}

int64_t open_file(const struct lind_call *call, lind_handle_fn *make)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	if (!c)
		return lind_forward(call);
	if ((r = file_reserve(c, 1, lind_call_name(call->nr))) < 0)
		return r;
	if ((r = make(call)) < 0)
		give_back(c, FILES, 1);
	else
		file_opened(c, (int)r);
	return r;
}

static int64_t on_dup2(const struct lind_call *call);

static int64_t on_open(const struct lind_call *call)
{
	return call->nr == SYS_dup2 || call->nr == SYS_dup3 ? on_dup2(call) : open_file(call, lind_forward);
}

static int64_t on_pair(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	int at = call->nr == SYS_socketpair ? 3 : 0;
	struct lind_call own = *call;
	int fds[2];
	int64_t r;

	if (!c)
		return lind_forward(call);
	if ((r = file_reserve(c, 2, call->nr == SYS_socketpair ? "socketpair" : "pipe")) < 0)
		return r;
	own.args[at] = lind_mine(fds);
	if ((r = lind_forward(&own)) < 0) {
		give_back(c, FILES, 2);
		return r;
	}
	if ((r = lind_write(call->args[at], fds, sizeof fds)) == 0) {
		file_opened(c, fds[0]);
		file_opened(c, fds[1]);
		return 0;
	}
	lind_call_plain(SYS_close, call->target, (uint64_t)fds[0], 0, 0, 0);
	lind_call_plain(SYS_close, call->target, (uint64_t)fds[1], 0, 0, 0);
	give_back(c, FILES, 2);
	return r;
}

static int64_t on_fcntl(const struct lind_call *call, int fd, int cmd, struct lind_arg arg)
{
	(void)fd, (void)arg;
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ? on_open(call) : lind_forward(call);
}

static bool counts(struct client *c, uint32_t fd)
{
	bool yes;

	pthread_mutex_lock(&c->lock);
	yes = fd < c->files_room && c->files[fd];
	pthread_mutex_unlock(&c->lock);
	return yes;
}

/* Makes a call that changes which numbers are open. The lock is held from then on. */
static int64_t forward_and_lock(struct client *c, const struct lind_call *call)
{
	int64_t r;

	pthread_mutex_lock(&c->lock);
	changes(c);
	r = lind_forward(call);
	changes(c);
	return r;
}

/* The number may be open, and is closed then. */
static int64_t on_dup2(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	uint32_t to = lind_arg32(call, 1);
	uint64_t reserved;
	int64_t r;

	if (!c)
		return lind_forward(call);
	reserved = !counts(c, to);
	if (reserved && (r = file_reserve(c, 1, "dup2")) < 0)
		return r;
	r = forward_and_lock(c, call);
	/* Between the look and the lock the number may have changed: then one more, or one less, was
	 * reserved. */
	give_back(c, FILES, reserved - (r >= 0 && set(c, to)));
	pthread_mutex_unlock(&c->lock);
	return r;
}

static int64_t on_close(const struct lind_call *call, int fd)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	if (!c)
		return lind_forward(call);
	r = forward_and_lock(c, call);
	/* The number is free after any result but EBADF. */
	if (r != -EBADF)
		clear(c, (uint32_t)fd);
	pthread_mutex_unlock(&c->lock);
	return r;
}

static int64_t on_close_range(const struct lind_call *call, unsigned first, unsigned last, int flags)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	(void)flags;
	if (!c)
		return lind_forward(call);
	r = forward_and_lock(c, call);
	for (uint32_t fd = first; r >= 0 && fd < c->files_room && fd <= last; fd++)
		if (c->files[fd] && !is_open(c, fd))
			clear(c, fd);
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* x86-64's struct cmsghdr, which control messages have. */
struct control {
	uint64_t length;
	int32_t level, type;
	int32_t fds[];
};

/* Counts the descriptors of one message; those beyond the limit are closed, as the kernel closes
 * descriptors that find no number. */
static bool keep_fds(struct client *c, struct control *m)
{
	uint64_t n = (m->length - sizeof *m) / sizeof *m->fds, kept = 0;

	while (kept < n && file_reserve(c, 1, "recvmsg") == 0)
		file_opened(c, m->fds[kept++]);
	for (uint64_t i = kept; i < n; i++)
		lind_call_plain(SYS_close, c->cage, (uint64_t)m->fds[i], 0, 0, 0);
	m->length = sizeof *m + kept * sizeof *m->fds;
	return kept == n;
}

void files_received(struct client *c, struct msghdr *own)
{
	char *at = own->msg_control, *end = at + own->msg_controllen;

	while (own->msg_control && (size_t)(end - at) >= sizeof(struct control)) {
		struct control *m = (struct control *)at;

		if (m->length < sizeof *m || m->length > (uint64_t)(end - at))
			break;
		at += (m->length + 7) & ~7ull;
		if (m->level == SOL_SOCKET && m->type == SCM_RIGHTS && !keep_fds(c, m)) {
			/* Descriptors that follow the cut message are closed as well. */
			own->msg_flags |= MSG_CTRUNC;
		}
		if (at > end)
			break;
	}
}

uint64_t files_in(const struct msghdr *own)
{
	const char *at = own->msg_control, *end = at + own->msg_controllen;
	uint64_t n = 0;

	while (at && end - at >= (ptrdiff_t)sizeof(struct control)) {
		const struct control *m = (const struct control *)at;

		if (m->length < sizeof *m || m->length > (uint64_t)(end - at))
			break;
		if (m->level == SOL_SOCKET && m->type == SCM_RIGHTS)
			n += (m->length - sizeof *m) / sizeof *m->fds;
		at += (m->length + 7) & ~7ull;
	}
	return n;
}

int64_t files_send(struct client *c, uint64_t n)
{
	int64_t r;

	each_client(recount_in_flight, NULL);
	recount_left();
	if ((r = file_reserve(c, n, "sendmsg")) < 0)
		return r;
	pthread_mutex_lock(&c->lock);
	c->parked += n;
	c->sending += n;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

void files_sent(struct client *c, uint64_t n, bool done)
{
	pthread_mutex_lock(&c->lock);
	c->sending -= n;
	if (!done) {
		c->parked -= n;
		give_back(c, FILES, n);
	}
	pthread_mutex_unlock(&c->lock);
}

LIND_HANDLE_OF(files, alters, pipe, on_pair);
LIND_HANDLE_OF(files, alters, pipe2, on_pair);
LIND_HANDLE_OF(files, alters, socketpair, on_pair);

/* clang-format off */
/* The calls whose result is a descriptor, also those that the kernel may get one day. */
#define EACH_OPENING(X) \
	X(open) X(dup) X(dup2) X(socket) X(accept) X(creat) X(epoll_create) X(mq_open) \
	X(inotify_init) X(openat) X(signalfd) X(timerfd_create) X(eventfd) X(accept4) \
	X(signalfd4) X(eventfd2) X(epoll_create1) X(dup3) X(inotify_init1) X(perf_event_open) \
	X(fanotify_init) X(open_by_handle_at) X(memfd_create) X(userfaultfd) X(io_uring_setup) \
	X(open_tree) X(fsopen) X(fsmount) X(fspick) X(pidfd_open) X(openat2) X(pidfd_getfd) \
	X(memfd_secret) X(give_fd) X(host_file)

#define OPENS(name) LIND_HANDLE_OF(files, alters, name, on_open);
/* clang-format on */
EACH_OPENING(OPENS)

void files_begin(void)
{
	lind_grate_part(files);
}
