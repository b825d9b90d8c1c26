/*
 * Bytes read and written. A call reserves what it may carry at most, waits for its turn where there is a rate, and gives back what it
 * did not carry. A call that may wait for data reserves nothing meanwhile. Where less is left than a call asks for it becomes a short
 * one, as on a disk that gets full; messages and what is written to pipes at once are passed whole or not at all.
 *
 * Which class a descriptor is of is asked for each call. A number that another thread gives to another file meanwhile could be counted
 * in the wrong class: then what was carried counts in all.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/transfer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "resource.h"

/* A rate lets this part of a second's bytes pass at once. */
#define BURSTS 10

#define MOST_MESSAGE 65536u	/* of a POSIX queue: longer than the kernel has any */

/* What a call reads from and writes to. */
struct use {
	struct client *c;
	const struct lind_call *call;
	enum what of[4];
	unsigned count;
	bool waits;		/* for data, and is not to hold what it reserved meanwhile */
	bool whole;		/* or not at all */
	bool directions[2];	/* reads, writes */
	uint64_t changes;
};

static enum what of_class(bool writes, enum class class)
{
	return (enum what)((writes ? WRITE : READ) + class);
}

static int option_of(const struct lind_call *call, struct lind_arg fd, int option, void *value, uint32_t size)
{
	struct lind_arg none = { 0, call->target };

	return (int)lind_call(SYS_getsockopt, call->target, fd, (struct lind_arg){ SOL_SOCKET, call->target },
		(struct lind_arg){ (uint64_t)option, call->target }, lind_mine(value), lind_mine(&size), none);
}

static int flags_of(const struct lind_call *call, struct lind_arg fd)
{
	struct lind_arg none = { 0, call->target };

	return (int)lind_call(SYS_fcntl, call->target, fd, (struct lind_arg){ F_GETFL, call->target }, none, none, none, none);
}

static void add(struct use *u, bool writes, enum class class)
{
	u->directions[writes] = true;
	if (counted(of_class(writes, NO_CLASS)) || paced(of_class(writes, NO_CLASS)))
		u->of[u->count++] = of_class(writes, NO_CLASS);
	if (class != NO_CLASS && (counted(of_class(writes, class)) || paced(of_class(writes, class))))
		u->of[u->count++] = of_class(writes, class);
}

/* Finds out what the descriptor is. */
static void add_fd(struct use *u, bool writes, struct lind_arg fd)
{
	struct lind_arg none = { 0, u->call->target };
	struct stat st = { 0 };
	enum class class = NO_CLASS;
	int domain = 0, type = 0;

	if (lind_call(SYS_fstat, u->call->target, fd, lind_mine(&st), none, none, none, none) < 0)
		return;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))
		class = OF_FILE;
	else if (S_ISFIFO(st.st_mode))
		class = OF_PIPE;
	else if (S_ISSOCK(st.st_mode)) {
		option_of(u->call, fd, SO_DOMAIN, &domain, sizeof domain);
		option_of(u->call, fd, SO_TYPE, &type, sizeof type);
		class = domain == AF_UNIX ? OF_PIPE : OF_NETWORK;
		if (type != SOCK_STREAM)
			u->whole = true;
	}
	if (!writes && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		u->waits = true;
	add(u, writes, class);
}

static void begin(struct use *u, struct client *c, const struct lind_call *call)
{
	*u = (struct use){ .c = c, .call = call, .changes = __atomic_load_n(&c->changes, __ATOMIC_SEQ_CST) };
}

/* Until there is something to read, at most so many milliseconds, or without end if that is -1. 1, 0 if the time is over, or a negative errno. An
 * epoll instance of ours can hold a descriptor of the client's; poll(2) takes numbers from whose memory they stand in. */
static int64_t wait_readable(const struct use *u, int64_t timeout)
{
	struct lind_arg none = { 0, u->call->target }, fd = u->call->args[0];
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLPRI | EPOLLRDHUP }, ready = { 0 };
	struct lind_arg epoll = { 0, lind_self() };
	int64_t r;
	int own;

	if ((own = epoll_create1(EPOLL_CLOEXEC)) < 0)
		return -errno;
	epoll.value = (uint64_t)own;
	r = lind_call(SYS_epoll_ctl, u->call->target, epoll, (struct lind_arg){ EPOLL_CTL_ADD, u->call->target }, fd, lind_mine(&wanted),
		none, none);
	/* What cannot be waited for does not wait. */
	r = r < 0 ? 1 : lind_call(SYS_epoll_wait, u->call->target, epoll, lind_mine(&ready), (struct lind_arg){ 1, u->call->target },
		(struct lind_arg){ (uint64_t)timeout, u->call->target }, none, none);
	close(own);
	return r;
}

/* Until the call would not wait, 0 or a negative errno. */
static int64_t wait_for_data(const struct use *u, uint64_t flags)
{
	struct { int64_t seconds, micros; } limit = { 0, 0 };
	int64_t r, timeout = -1;

	if (flags & MSG_DONTWAIT || flags_of(u->call, u->call->args[0]) & O_NONBLOCK)
		return 0;
	if (option_of(u->call, u->call->args[0], SO_RCVTIMEO, &limit, sizeof limit) == 0 && (limit.seconds || limit.micros))
		timeout = limit.seconds > INT_MAX / 1000 - 1 ? INT_MAX : limit.seconds * 1000 + (limit.micros + 999) / 1000;
	r = wait_readable(u, timeout);
	return r < 0 ? r : r ? 0 : -EAGAIN;
}

static void un_reserve(const struct use *u, uint64_t n)
{
	for (unsigned i = 0; i < u->count; i++)
		give_back(u->c, u->of[i], n);
}

/* Up to `n` bytes of every limit, or the answer to a limit that was hit. */
static int64_t reserve_bytes(const struct use *u, uint64_t n)
{
	uint64_t got = n;

	for (unsigned i = 0; i < u->count * SCOPES; i++) {
		enum scope scope = (enum scope)(i % SCOPES);
		uint64_t more = grab(scope, u->c, u->of[i / SCOPES], got);
		bool enough = more == got || (more && !(u->whole && u->directions[1]));

		/* What was reserved of the limits before this one beyond what this one allows. */
		for (unsigned j = 0; j < i && more < got; j++)
			drop((enum scope)(j % SCOPES), u->c, u->of[j / SCOPES], enough ? got - more : got);
		if (!enough) {
			drop(scope, u->c, u->of[i / SCOPES], more);
			return hit(u->c, scope, u->of[i / SCOPES], n, call_name(u->call->nr));
		}
		got = more;
	}
	return (int64_t)got;
}

static pthread_mutex_t rates_lock = PTHREAD_MUTEX_INITIALIZER;

static struct rate *rate(const struct use *u, unsigned i)
{
	enum what what = u->of[i / SCOPES];

	return i % SCOPES == TREE ? &tree_rates[what - RATES_FROM] : &u->c->rates[what - RATES_FROM];
}

static int64_t nanos(const struct rate *r, uint64_t n)
{
	return (int64_t)((unsigned __int128)n * 1000000000 / r->per_second);
}

static uint64_t at_once(const struct use *u, uint64_t n)
{
	for (unsigned i = 0; i < u->count * SCOPES; i++) {
		const struct rate *r = rate(u, i);
		uint64_t burst = (r->per_second + BURSTS - 1) / BURSTS;

		if (r->per_second && n > burst)
			n = burst;
	}
	return n;
}

/* Takes the next `n` bytes of every rate; when they may pass. */
static int64_t take_turn(const struct use *u, uint64_t n, int64_t at)
{
	int64_t turn = at;

	pthread_mutex_lock(&rates_lock);
	for (unsigned i = 0; i < u->count * SCOPES; i++) {
		struct rate *r = rate(u, i);

		if (!r->per_second)
			continue;
		if (r->free_at < at)
			r->free_at = at;
		if (r->free_at > turn)
			turn = r->free_at;
		r->free_at += nanos(r, n);
	}
	pthread_mutex_unlock(&rates_lock);
	return turn;
}

static void give_turn_back(const struct use *u, uint64_t n)
{
	pthread_mutex_lock(&rates_lock);
	for (unsigned i = 0; i < u->count * SCOPES && n; i++) {
		struct rate *r = rate(u, i);

		if (r->per_second)
			r->free_at -= nanos(r, n);
	}
	pthread_mutex_unlock(&rates_lock);
}

/* Signals of the client end this wait, since it is made for it. */
static int64_t sleep_until(const struct use *u, int64_t at)
{
	struct lind_arg none = { 0, u->call->target };
	struct timespec t = { .tv_sec = at / 1000000000, .tv_nsec = (long)(at % 1000000000) };

	return lind_call(SYS_clock_nanosleep, u->call->target, (struct lind_arg){ CLOCK_MONOTONIC, u->call->target },
		(struct lind_arg){ TIMER_ABSTIME, u->call->target }, lind_mine(&t), none, none, none);
}

/* How many of `n` bytes may pass now; at least 1. Or the answer to the call. */
static int64_t admit(const struct use *u, uint64_t n, uint64_t flags)
{
	int64_t got, at, turn, r;

	if (u->waits && (r = wait_for_data(u, flags)) < 0)
		return r;
	/* As the kernel does, which carries no more at once. */
	if (n > INT_MAX)
		n = INT_MAX;
	if (!u->whole)
		n = at_once(u, n);
	if ((got = reserve_bytes(u, n)) < 0)
		return got;
	at = now();
	turn = take_turn(u, (uint64_t)got, at);
	if (turn > at && (r = sleep_until(u, turn)) < 0) {
		give_turn_back(u, (uint64_t)got);
		un_reserve(u, (uint64_t)got);
		return r;
	}
	return got;
}

/* The call carried `used` of the bytes that were admitted. */
static void carried(const struct use *u, uint64_t admitted, uint64_t used)
{
	uint64_t rest = used < admitted ? admitted - used : 0;

	if (rest) {
		un_reserve(u, rest);
		give_turn_back(u, rest);
	}
	if (__atomic_load_n(&u->c->changes, __ATOMIC_SEQ_CST) == u->changes)
		return;
	for (int writes = 0; writes < 2; writes++)
		for (enum class class = NO_CLASS; u->directions[writes] && class < ANY_CLASS; class++) {
			bool known = false;

			for (unsigned i = 0; i < u->count; i++)
				known |= u->of[i] == of_class(writes, class);
			if (!known)
				give_back(u->c, of_class(writes, class), -used);
		}
}

static int64_t after(const struct use *u, uint64_t admitted, int64_t r)
{
	carried(u, admitted, r > 0 ? (uint64_t)r : 0);
	return r;
}

/* A call whose argument `length` says how much it carries, and whose result how much it carried. */
static int64_t limited_call(struct use *u, int length, uint64_t flags)
{
	struct lind_call own = *u->call;
	int64_t n;

	if (!own.args[length].value || !u->count)
		return lind_forward(u->call);
	if ((n = admit(u, own.args[length].value, flags)) < 0)
		return n;
	own.args[length].value = (uint64_t)n;
	return after(u, (uint64_t)n, lind_forward(&own));
}

/* Of `n` bytes all or nothing; the result is no count. */
static int64_t whole_call(struct use *u, uint64_t n)
{
	int64_t got, r;

	u->whole = true;
	if (!n || !u->count)
		return lind_forward(u->call);
	if ((got = admit(u, n, 0)) < 0)
		return got;
	r = lind_forward(u->call);
	carried(u, (uint64_t)got, r < 0 ? 0 : (uint64_t)got);
	return r;
}

static int64_t plain(const struct lind_call *call, bool writes)
{
	struct client *c = lind_client(call->target);
	struct use u;

	if (!c)
		return lind_forward(call);
	begin(&u, c, call);
	add_fd(&u, writes, call->args[0]);
	/* What fits a pipe at once is written at once. */
	if (writes && call->args[2].value <= PIPE_BUF && !u.whole)
		u.whole = u.count && u.of[u.count - 1] == WRITE_PIPE;
	return limited_call(&u, 2, call->nr == SYS_recvfrom ? call->args[3].value : 0);
}

static int64_t on_read(const struct lind_call *call)
{
	return plain(call, false);
}

static int64_t on_write(const struct lind_call *call)
{
	return plain(call, true);
}

/* Through a copy: the pieces could change between the look at them and the call. */
static int64_t pieces(const struct lind_call *call, bool writes)
{
	struct client *c = lind_client(call->target);
	struct lind_call own = *call;
	struct lind_vector v;
	struct iovec one;
	struct use u;
	int64_t n, r;

	if (!c)
		return lind_forward(call);
	begin(&u, c, call);
	add_fd(&u, writes, call->args[0]);
	if (!u.count || call->args[2].value > 1024)
		return lind_forward(call);
	if ((r = lind_vector_read(&v, call->args[1], call->args[2].value)) < 0)
		return r;
	if (!v.total) {
		lind_vector_free(&v);
		return lind_forward(call);
	}
	n = admit(&u, v.total, 0);
	one = (struct iovec){ n > 0 ? malloc((size_t)n) : NULL, n > 0 ? (size_t)n : 0 };
	if (n < 0)
		r = n;
	else if (!one.iov_base || (writes && lind_vector_gather(&v, one.iov_base, one.iov_len) < 0))
		r = after(&u, (uint64_t)n, one.iov_base ? -EFAULT : -ENOMEM);
	else {
		own.args[1] = lind_mine(&one);
		own.args[2].value = 1;
		r = after(&u, (uint64_t)n, lind_forward(&own));
		if (r > 0 && !writes && lind_vector_scatter(&v, one.iov_base, (size_t)r) < 0)
			r = -EFAULT;
	}
	free(one.iov_base);
	lind_vector_free(&v);
	return r;
}

static int64_t on_readv(const struct lind_call *call)
{
	return pieces(call, false);
}

static int64_t on_writev(const struct lind_call *call)
{
	return pieces(call, true);
}

static int64_t message(struct use *u, struct lind_message *m, bool writes, uint64_t flags)
{
	int64_t n = 0, r;

	if (u->count && m->piece.iov_len) {
		if ((n = admit(u, m->piece.iov_len, flags)) < 0)
			return n;
		m->piece.iov_len = (size_t)n;
	}
	r = lind_message_pass(m, u->call, flags);
	if (n)
		/* MSG_TRUNC tells more than was given. */
		after(u, (uint64_t)n, r > n ? n : r);
	if (!writes && r >= 0) {
		if (limited(FILES))
			files_received(u->c, &m->own);
		r = lind_message_give(m, r, flags);
	}
	return r;
}

static int64_t on_message(const struct lind_call *call)
{
	bool writes = call->nr == SYS_sendmsg;
	struct client *c = lind_client(call->target);
	struct lind_message m;
	struct use u;
	int64_t r;

	if (!c)
		return lind_forward(call);
	begin(&u, c, call);
	add_fd(&u, writes, call->args[0]);
	r = writes ? lind_message_sent(&m, call->args[1]) : lind_message_room(&m, call->args[1]);
	if (r < 0)
		return r;
	r = message(&u, &m, writes, call->args[2].value);
	lind_message_free(&m);
	return r;
}

static int64_t on_messages(const struct lind_call *call)
{
	return lind_message_each(call, on_message);
}

/* From one descriptor to another: which arguments they and the length are. */
static int64_t between(const struct lind_call *call, int in, int out, int length)
{
	struct client *c = lind_client(call->target);
	struct use u;

	if (!c)
		return lind_forward(call);
	begin(&u, c, call);
	add_fd(&u, false, call->args[in]);
	add_fd(&u, true, call->args[out]);
	/* They wait where they wait: what they hold meanwhile is what they will carry. */
	u.waits = u.whole = false;
	return limited_call(&u, length, 0);
}

static int64_t on_sendfile(const struct lind_call *call)
{
	return between(call, 1, 0, 3);
}

static int64_t on_splice(const struct lind_call *call)
{
	return between(call, 0, 2, 4);
}

static int64_t on_tee(const struct lind_call *call)
{
	return between(call, 0, 1, 2);
}

/* Room on a disk, extended attributes, messages of System V: of this class, and so many bytes. */
static int64_t of_kind(const struct lind_call *call, bool writes, enum class class, uint64_t n)
{
	struct client *c = lind_client(call->target);
	struct use u;

	if (!c)
		return lind_forward(call);
	begin(&u, c, call);
	add(&u, writes, class);
	return whole_call(&u, n);
}

static int64_t on_fallocate(const struct lind_call *call)
{
	int mode = (int)call->args[1].value;

	return of_kind(call, true, OF_FILE, mode & ~FALLOC_FL_KEEP_SIZE ? 0 : call->args[3].value);
}

static int64_t on_setxattr(const struct lind_call *call)
{
	return of_kind(call, true, OF_FILE, call->args[3].value);
}

static int64_t on_msgsnd(const struct lind_call *call)
{
	return of_kind(call, true, OF_PIPE, call->args[2].value);
}

static int64_t on_msgrcv(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	struct use u;

	if (!c)
		return lind_forward(call);
	begin(&u, c, call);
	add(&u, false, OF_PIPE);
	return limited_call(&u, 2, 0);
}

/* How long mq_timedreceive may wait, in milliseconds; -1: without end. */
static int64_t time_left(struct lind_arg until)
{
	struct { int64_t seconds, nanos; } at;
	struct timespec t;
	int64_t left;

	if (!until.value)
		return -1;
	/* What is wrong with it the call will say. */
	if (lind_read(until, &at, sizeof at) || clock_gettime(CLOCK_REALTIME, &t))
		return 0;
	left = at.seconds - t.tv_sec;
	left = left > INT_MAX / 1000 - 1 ? INT_MAX : left < 0 ? 0 : left * 1000 + (at.nanos - t.tv_nsec) / 1000000 + 1;
	return left < 0 ? 0 : left;
}

/* A message may be shorter than the room for it, which has to be enough for the longest: it is taken whole, and cut if less is left. */
static int64_t receive_cut(const struct use *u, uint64_t admitted)
{
	struct lind_call own = *u->call;
	char *message = malloc(MOST_MESSAGE);
	int64_t r;

	if (!message)
		return after(u, admitted, -ENOMEM);
	own.args[1] = lind_mine(message);
	own.args[2].value = own.args[2].value < MOST_MESSAGE ? own.args[2].value : MOST_MESSAGE;
	r = lind_forward(&own);
	if (r > (int64_t)admitted)
		r = (int64_t)admitted;
	after(u, admitted, r);
	if (r > 0 && lind_write(u->call->args[1], message, (size_t)r))
		r = -EFAULT;
	free(message);
	return r;
}

static int64_t on_mq_receive(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	uint64_t length = call->args[2].value;
	struct use u;
	int64_t n;

	if (!c)
		return lind_forward(call);
	begin(&u, c, call);
	add(&u, false, OF_PIPE);
	if (!u.count || !length)
		return lind_forward(call);
	/* Where the time is over the call says so by itself. */
	if (!(flags_of(call, call->args[0]) & O_NONBLOCK) && (n = wait_readable(&u, time_left(call->args[4]))) < 0)
		return n;
	if ((n = admit(&u, length, 0)) < 0)
		return n;
	return (uint64_t)n < length ? receive_cut(&u, (uint64_t)n) : after(&u, (uint64_t)n, lind_forward(call));
}

int64_t map_file(struct client *c, const struct lind_call *call, lind_handle_fn *map)
{
	uint64_t n = call->args[1].value;
	int64_t got, r;
	struct use u;

	if (call->args[3].value & MAP_ANONYMOUS || !n)
		return map(call);
	begin(&u, c, call);
	add_fd(&u, false, call->args[4]);
	if (call->args[3].value & MAP_SHARED && (flags_of(call, call->args[4]) & O_ACCMODE) != O_RDONLY)
		add_fd(&u, true, call->args[4]);
	u.waits = false;
	u.whole = true;
	u.directions[1] = true;
	if (!u.count)
		return map(call);
	if ((got = admit(&u, n, 0)) < 0)
		return got;
	r = map(call);
	carried(&u, (uint64_t)got, r < 0 && r >= -4095 ? 0 : (uint64_t)got);
	return r;
}

static int64_t on_mmap(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	return c ? map_file(c, call, lind_forward) : lind_forward(call);
}

/* Before and after: a call that sees the same number at its beginning and end met none of these. */
static int64_t on_change(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	if (!c)
		return lind_forward(call);
	__atomic_fetch_add(&c->changes, 1, __ATOMIC_SEQ_CST);
	r = lind_forward(call);
	__atomic_fetch_add(&c->changes, 1, __ATOMIC_SEQ_CST);
	return r;
}

static bool any(enum what from, bool classes)
{
	for (enum what what = from + classes; what < from + ANY_CLASS; what++)
		if (counted(what) || paced(what))
			return true;
	return false;
}

/* Both ways at once by what its descriptor is for: readv and writev are the same. */
static int64_t on_vmsplice(const struct lind_call *call)
{
	(void)call;
	return -ENOSYS;
}

size_t byte_handlers(struct lind_handler *to)
{
	static const struct lind_handler reads[] = {
		{ SYS_read, on_read }, { SYS_pread64, on_read }, { SYS_recvfrom, on_read }, { SYS_readv, on_readv }, { SYS_preadv, on_readv },
		{ SYS_preadv2, on_readv }, { SYS_msgrcv, on_msgrcv }, { SYS_mq_timedreceive, on_mq_receive },
	}, writes[] = {
		{ SYS_write, on_write }, { SYS_pwrite64, on_write }, { SYS_sendto, on_write }, { SYS_writev, on_writev },
		{ SYS_pwritev, on_writev }, { SYS_pwritev2, on_writev }, { SYS_sendmsg, on_message }, { SYS_sendmmsg, on_messages },
		{ SYS_fallocate, on_fallocate }, { SYS_setxattr, on_setxattr }, { SYS_lsetxattr, on_setxattr },
		{ SYS_fsetxattr, on_setxattr }, { SYS_msgsnd, on_msgsnd }, { SYS_mq_timedsend, on_msgsnd },
	}, receives[] = {
		{ SYS_recvmsg, on_message }, { SYS_recvmmsg, on_messages },
	}, both[] = {
		{ SYS_sendfile, on_sendfile }, { SYS_splice, on_splice }, { SYS_tee, on_tee }, { SYS_copy_file_range, on_splice },
		{ SYS_mmap, on_mmap }, { SYS_vmsplice, on_vmsplice },
	}, changes[] = {
		{ SYS_close, on_change }, { SYS_dup2, on_change }, { SYS_dup3, on_change }, { SYS_close_range, on_change },
	};
	bool read = any(READ, false), write = any(WRITE, false);
	size_t n = 0;
#define ALL(list) (memcpy(to + n, list, sizeof list), n += sizeof list / sizeof *list)

	if (read)
		ALL(reads);
	if (write)
		ALL(writes);
	if (read || limited(FILES))
		ALL(receives);
	if (read || write)
		ALL(both);
	if (any(READ, true) || any(WRITE, true))
		ALL(changes);
	return n;
}
