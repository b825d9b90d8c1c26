/* Waits for clocks and descriptors. */
#include "wasi.h"

enum { CLOCK, READABLE, WRITABLE };
enum { ABSOLUTE = 1, HANGUP = 1, POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32, FIONREAD = 0x541b };

struct subscription {
	uint64_t userdata;
	uint32_t kind; /* one byte and padding */
	uint32_t pad;
	union {
		struct {
			uint32_t clock, pad;
			uint64_t timeout, precision;
			uint32_t flags;
		} clock;
		fd_t fd;
	} u;
};

_Static_assert(sizeof(struct subscription) == 48, "as WASI lays it out");

struct event {
	uint64_t userdata;
	uint16_t error;
	uint8_t kind, pad[5];
	uint64_t bytes;
	uint16_t flags, pad2[3];
};

struct pollfd {
	int32_t fd;
	int16_t events, came;
};

/* The most subscriptions that are waited for at once: those that fit into the buffer of the
 * state. */
enum { MOST = sizeof(((struct state *)0)->entries) / sizeof(struct pollfd) };

static result_t now_of(uint32_t clock, uint64_t *now)
{
	struct timespec t = { 0, 0 };
	result_t error = clock > 3 ? WASI_INVAL : error_of(CALL2(SYS_CLOCK_GETTIME, clock, address(&t)));

	*now = (uint64_t)t.seconds * 1000000000 + (uint64_t)t.nanoseconds;
	return error;
}

/* The remaining time of a clock's subscription, counted from the beginning of the call. */
static result_t left_of(const struct subscription *s, uint64_t waited, uint64_t *left)
{
	uint64_t now, timeout = s->u.clock.timeout;
	result_t error = now_of(s->u.clock.clock, &now);

	if (error)
		return error;
	if (s->u.clock.flags & ABSOLUTE)
		*left = timeout > now ? timeout - now : 0;
	else
		*left = timeout > waited ? timeout - waited : 0;
	return 0;
}

static uint8_t kind_of(const struct subscription *s)
{
	return (uint8_t)s->kind;
}

/* The number of bytes that can be read without waiting: of a file, the bytes after its position. */
static uint64_t readable(fd_t fd)
{
	struct stat stat;
	result_t error;
	int32_t waiting = 0;

	if (type_of(fd, &stat, &error) == REGULAR && !error) {
		int64_t at = CALL3(SYS_LSEEK, (int32_t)fd, 0, 1);
		return at >= 0 && at < stat.size ? (uint64_t)(stat.size - at) : 0;
	}
	return CALL3(SYS_IOCTL, (int32_t)fd, FIONREAD, address(&waiting)) < 0 || waiting < 0 ? 0 : (uint64_t)waiting;
}

static struct event *tell(struct event *to, const struct subscription *s, result_t error)
{
	__builtin_memset(to, 0, sizeof *to);
	to->userdata = s->userdata;
	to->error = (uint16_t)error;
	to->kind = kind_of(s);
	return to + 1;
}

static struct event *tell_fd(struct event *to, const struct subscription *s, int came)
{
	if (came & POLLNVAL)
		return tell(to, s, WASI_BADF);
	struct event *next = tell(to, s, came & POLLERR ? WASI_IO : 0);
	if (kind_of(s) == READABLE)
		to->bytes = readable(s->u.fd);
	if (came & POLLHUP)
		to->flags = HANGUP;
	return next;
}

/* Puts descriptors into the buffer and finds the nearest clock: -1 if there is none. */
static result_t gather(
    const struct subscription *s, uint32_t count, struct pollfd *fds, uint64_t waited, int64_t *nearest)
{
	*nearest = -1;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t left;
		fds[i].fd = -1;
		fds[i].events = fds[i].came = 0;
		switch (kind_of(&s[i])) {
		case CLOCK:
			/* A clock that does not exist is an event at once. */
			if (left_of(&s[i], waited, &left))
				left = 0;
			if (left > INT64_MAX)
				left = INT64_MAX;
			if (*nearest < 0 || (int64_t)left < *nearest)
				*nearest = (int64_t)left;
			break;
		case READABLE:
		case WRITABLE:
			fds[i].fd = (int32_t)s[i].u.fd;
			fds[i].events = kind_of(&s[i]) == READABLE ? POLLIN : POLLOUT;
			/* The kernel skips negative numbers. */
			if (fds[i].fd < 0) {
				fds[i].came = POLLNVAL;
				*nearest = 0;
			}
			break;
		default:
			return WASI_INVAL;
		}
	}
	return 0;
}

static struct event *events(
    const struct subscription *s, uint32_t count, const struct pollfd *fds, uint64_t waited, struct event *to)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t left = 0;
		if (kind_of(&s[i]) != CLOCK) {
			int came = fds[i].fd < 0 ? POLLNVAL : fds[i].came;
			to = came ? tell_fd(to, &s[i], came) : to;
			continue;
		}
		result_t error = left_of(&s[i], waited, &left);
		if (error || !left)
			to = tell(to, &s[i], error);
	}
	return to;
}

EXPORT(poll_oneoff) result_t poll_oneoff(const struct subscription *s, struct event *to, uint32_t count, uint32_t *came)
{
	struct pollfd *fds = (struct pollfd *)state()->entries;
	uint64_t began, now;
	struct event *end;

	if (!count || count > MOST)
		return WASI_INVAL;
	result_t error = now_of(1, &began);
	now = began;
	do {
		int64_t nearest;
		error = error ? error : gather(s, count, fds, now - began, &nearest);
		if (error)
			return error;
		struct timespec timeout = timespec_of((uint64_t)nearest);
		int64_t got = CALL5(SYS_PPOLL, address(fds), count, nearest < 0 ? 0 : address(&timeout), 0, 8);
		if (got < 0 && got != -E_INTR)
			return error_of(got);
		error = now_of(1, &now);
		/* Subscriptions and events may share memory: overwritten subscriptions are not read again. */
		end = events(s, count, fds, now - began, to);
	} while (end == to);
	*came = (uint32_t)(end - to);
	return 0;
}
