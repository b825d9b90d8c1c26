/*
 * The bytes that a call reads and writes, and their limits: reserved before the call and given back
 * after it, with a wait if there is a rate. use.h has the functions for calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "limits.h"
#include "use.h"

/* A rate lets this part of a second's bytes pass at once. */
#define BURSTS 10

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

int flags_of(const struct lind_call *call, struct lind_arg fd)
{
	struct lind_arg none = { 0, call->target };

	return (int)lind_call(
	    SYS_fcntl, call->target, fd, (struct lind_arg){ F_GETFL, call->target }, none, none, none, none);
}

void use_add(struct use *u, bool writes, enum class class)
{
	u->directions[writes] = true;
	if (counted(of_class(writes, NO_CLASS)) || paced(of_class(writes, NO_CLASS)))
		u->of[u->count++] = of_class(writes, NO_CLASS);
	if (class != NO_CLASS && (counted(of_class(writes, class)) || paced(of_class(writes, class))))
		u->of[u->count++] = of_class(writes, class);
}

void use_add_fd(struct use *u, bool writes, struct lind_arg fd)
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
	use_add(u, writes, class);
}

void use_begin(struct use *u, struct client *c, const struct lind_call *call)
{
	*u = (struct use){ .c = c, .call = call, .changes = __atomic_load_n(&c->changes, __ATOMIC_SEQ_CST) };
}

/* An epoll instance of ours can hold a descriptor of the client's; poll(2) takes numbers from
 * whose memory they stand in. */
int64_t use_wait(const struct use *u, int64_t timeout)
{
	struct lind_arg none = { 0, u->call->target }, fd = u->call->args[0];
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLPRI | EPOLLRDHUP }, ready = { 0 };
	struct lind_arg epoll = { 0, lind_self() };
	int64_t r;
	int own;

	if ((own = epoll_create1(EPOLL_CLOEXEC)) < 0)
		return -errno;
	epoll.value = (uint64_t)own;
	r = lind_call(SYS_epoll_ctl, u->call->target, epoll, (struct lind_arg){ EPOLL_CTL_ADD, u->call->target }, fd,
	    lind_mine(&wanted), none, none);
	/* A file that cannot be polled does not make a call wait. */
	r = r < 0 ? 1
		  : lind_call(SYS_epoll_wait, u->call->target, epoll, lind_mine(&ready),
			(struct lind_arg){ 1, u->call->target },
			(struct lind_arg){ (uint64_t)timeout, u->call->target }, none, none);
	close(own);
	return r;
}

/* Until the call would not wait, 0 or a negative errno. */
static int64_t wait_for_data(const struct use *u, uint64_t flags)
{
	struct {
		int64_t seconds, micros;
	} limit = { 0, 0 };
	int64_t r, timeout = -1;

	if (flags & MSG_DONTWAIT || flags_of(u->call, u->call->args[0]) & O_NONBLOCK)
		return 0;
	if (option_of(u->call, u->call->args[0], SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
	    (limit.seconds || limit.micros))
		timeout =
		    limit.seconds > INT_MAX / 1000 - 1 ? INT_MAX : limit.seconds * 1000 + (limit.micros + 999) / 1000;
	r = use_wait(u, timeout);
	return r < 0 ? r : r ? 0 : -EAGAIN;
}

static void un_reserve(const struct use *u, uint64_t n)
{
	for (unsigned i = 0; i < u->count; i++)
		give_back(u->c, u->of[i], n);
}

/* Reserves up to `n` bytes under every limit. Returns how many, or the errno for the limit that
 * was hit. */
static int64_t reserve_bytes(const struct use *u, uint64_t n)
{
	uint64_t got = n;

	for (unsigned i = 0; i < u->count * SCOPES; i++) {
		enum scope scope = (enum scope)(i % SCOPES);
		uint64_t more = grab(scope, u->c, u->of[i / SCOPES], got);
		bool enough = more == got || (more && !(u->whole && u->directions[1]));

		/* Give back the amounts of earlier limits beyond what this one allows. */
		for (unsigned j = 0; j < i && more < got; j++)
			drop((enum scope)(j % SCOPES), u->c, u->of[j / SCOPES], enough ? got - more : got);
		if (!enough) {
			drop(scope, u->c, u->of[i / SCOPES], more);
			return hit(u->c, scope, u->of[i / SCOPES], n, lind_call_name(u->call->nr));
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

	return lind_forward_clock_nanosleep(u->call, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, none);
}

int64_t use_admit(const struct use *u, uint64_t n, uint64_t flags)
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

void use_carried(const struct use *u, uint64_t admitted, uint64_t used)
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

int64_t use_after(const struct use *u, uint64_t admitted, int64_t r)
{
	use_carried(u, admitted, r > 0 ? (uint64_t)r : 0);
	return r;
}

int64_t use_limited_call(struct use *u, int length, uint64_t flags)
{
	struct lind_call own = *u->call;
	int64_t n;

	if (!own.args[length].value || !u->count)
		return lind_forward(u->call);
	if ((n = use_admit(u, own.args[length].value, flags)) < 0)
		return n;
	own.args[length].value = (uint64_t)n;
	return use_after(u, (uint64_t)n, lind_forward(&own));
}

int64_t use_whole_call(struct use *u, uint64_t n)
{
	int64_t got, r;

	u->whole = true;
	if (!n || !u->count)
		return lind_forward(u->call);
	if ((got = use_admit(u, n, 0)) < 0)
		return got;
	r = lind_forward(u->call);
	use_carried(u, (uint64_t)got, r < 0 ? 0 : (uint64_t)got);
	return r;
}

int64_t use_of_kind(const struct lind_call *call, bool writes, enum class class, uint64_t n)
{
	struct client *c = lind_client(call->target);
	struct use u;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add(&u, writes, class);
	return use_whole_call(&u, n);
}
