/*
 * Descriptors: which are inside, and calls that take or make them.
 *
 * A mark is set before the call that made the descriptor returns to the client, and taken away
 * after the one that closed it. Calls that make descriptors outside take marks away too: a number
 * may have been closed by exec, or given again meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "calls.h"
#include "fds.h"
#include "hold.h"
#include "kinds.h"
#include "words.h"

#define FDS_SET_MAX 1024u
#define POLL_MAX    4096u

static struct {
	uint32_t first, last;
} start_fds[8];
static size_t start_count;

const char *add_start_fds(const char *value)
{
	char *end;
	unsigned long first = strtoul(value, &end, 10), last = first;

	if (end == value || (*end && *end != '-'))
		return "must be a number or two with - between them";
	if (*end == '-') {
		char *from = end + 1;

		last = strtoul(from, &end, 10);
		if (end == from || *end || last < first)
			return "must be a number or two with - between them";
	}
	if (last >= LIND_FDS || start_count == sizeof start_fds / sizeof *start_fds)
		return "too large, or too many of them";
	start_fds[start_count].first = (uint32_t)first;
	start_fds[start_count++].last = (uint32_t)last;
	by_fd = true;
	return NULL;
}

/* Looks at each open number as /proc lists them. False where it does not list all: another user's
 * are kept from us. */
static bool look_at_listed(struct client *client)
{
	char name[40];
	struct dirent *entry;
	bool whole;
	DIR *list;

	snprintf(name, sizeof name, "/proc/%llu/fd", (unsigned long long)atomic_load(&client->cage));
	if (!(list = opendir(name)))
		return false;
	while ((errno = 0, entry = readdir(list))) {
		unsigned long fd = strtoul(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' && fd < LIND_FDS)
			fd_made_outside(client, (uint32_t)fd);
	}
	whole = !errno;
	closedir(list);
	return whole;
}

static void look_at_all(struct client *client)
{
	for (uint32_t fd = 0; fd < LIND_FDS; fd++)
		if (lind_call_plain(SYS_fcntl, client->cage, fd, F_GETFD, 0, 0) >= 0)
			fd_made_outside(client, fd);
}

void mark_start_fds(struct client *client)
{
	for (size_t i = 0; i < start_count; i++)
		for (uint32_t fd = start_fds[i].first; fd <= start_fds[i].last; fd++)
			fd_mark(client, fd);
	if (by_property && !look_at_listed(client))
		look_at_all(client);
}

/* Without room we could not keep what we promise: end, which fails the clients. Pages that
 * nothing is written to cost nothing. */
void fds_init(struct client *client)
{
	client->fds =
	    mmap(NULL, LIND_FDS * sizeof *client->fds, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (client->fds == MAP_FAILED)
		lind_die("out of memory for descriptors");
	for (uint32_t fd = 0; by_property && fd < LIND_FDS; fd++)
		atomic_store_explicit(&client->fds[fd], unknown_word(), memory_order_relaxed);
}

int64_t on_enter(const struct lind_call *c)
{
	return enter(c);
}

/* About the number and not about the file. */
static int64_t on_number(const struct lind_call *c)
{
	return pass(c, fd_inside(c->args[0]));
}

int64_t on_fd(const struct lind_call *c)
{
	if (c->nr == SYS_ioctl && (lind_arg32(c, 1) == FIOCLEX || lind_arg32(c, 1) == FIONCLEX))
		return on_number(c);
	return fd_inside(c->args[0]) ? enter(c) : go_past(c, 1);
}

/* Two descriptors: copy_file_range, splice, epoll_ctl and the like. */
int64_t on_fds(const struct lind_call *c)
{
	int second = c->nr == SYS_sendfile || c->nr == SYS_tee ? 1 : 2;

	if (fd_inside(c->args[0]) || fd_inside(c->args[second]))
		return enter(c);
	/* An epoll's list goes by numbers, and says only what is ready. */
	return c->nr == SYS_epoll_ctl ? lind_forward(c) : go_past(c, 1u | 1u << second);
}

/* The new descriptor is where the old one is. For one outside: as fd_outside. */
static int64_t made(const struct lind_call *c, int64_t fd, bool inside, uint32_t since)
{
	struct client *client = lind_client(c->target);

	if (fd >= 0 && inside)
		fd_mark(client, (uint64_t)fd);
	else if (fd >= 0)
		fd_outside(client, (uint64_t)fd, since);
	return fd;
}

/* Of a descriptor that is inside another one that is; what else happens meanwhile is told to
 * `begins` and `ends`. */
static int64_t made_of(const struct lind_call *c, void begins(struct client *), void ends(struct client *))
{
	struct client *client = lind_client(c->target);
	uint32_t since = fd_since(client);
	bool inside = fd_inside(c->args[0]);
	int64_t fd;

	if (!inside && !by_property)
		return made(c, go_past(c, 1), false, since);
	begins(client);
	fd = made(c, inside ? enter(c) : go_past(c, 1), inside, since);
	ends(client);
	return fd;
}

int64_t on_accept(const struct lind_call *c)
{
	return made_of(c, waiting_begins, making_ends);
}

/* Around a call outside that makes a descriptor: what it is may put it inside. */
static void may_match(struct client *client, void now(struct client *))
{
	if (by_property)
		now(client);
}

/* Makes a descriptor out of nothing that is inside. */
int64_t on_made(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	uint32_t since = fd_since(client);
	int64_t fd;

	may_match(client, making_begins);
	fd = made(c, lind_forward(c), false, since);
	may_match(client, making_ends);
	return fd;
}

/* pipe, pipe2, socketpair. The kernel's answer goes through our memory: the client cannot change
 * it before we have read it. */
int64_t on_pair(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	struct lind_call changed = *c;
	uint32_t since = fd_since(client);
	int at = c->nr == SYS_socketpair ? 3 : 0;
	int32_t fds[2] = { -1, -1 };
	int64_t r;

	changed.args[at] = lind_mine(fds);
	may_match(client, making_begins);
	if ((r = lind_forward(&changed)) >= 0) {
		made(c, fds[0], false, since);
		made(c, fds[1], false, since);
	}
	may_match(client, making_ends);
	if (r < 0 || !lind_write(c->args[at], fds, sizeof fds))
		return r;
	lind_call_plain(SYS_close, c->target, (uint32_t)fds[0], 0, 0, 0);
	lind_call_plain(SYS_close, c->target, (uint32_t)fds[1], 0, 0, 0);
	return -EFAULT;
}

int64_t on_close(const struct lind_call *c)
{
	struct client *client = c->args[0].cage ? lind_client(c->args[0].cage) : NULL;
	uint32_t mine;
	int64_t r = -EINTR;

	if (!letting_begins(client))
		return -EINTR;
	if (let_go(client, lind_arg32(c, 0), &mine)) {
		r = pass(c, fd_inside(c->args[0]));
		/* Linux closes a descriptor also where close fails, but for a bad one. */
		has_let_go(client, lind_arg32(c, 0), mine, r == -EBADF ? mine & INSIDE : 0);
	}
	letting_ends(client);
	return r;
}

/* Of a client with threads: number by number. */
static int64_t close_range_while_it_changes(const struct lind_call *c, struct client *client)
{
	uint32_t first = lind_arg32(c, 0), last = lind_arg32(c, 1) < LIND_FDS ? lind_arg32(c, 1) : LIND_FDS - 1, fd,
		 *mine;
	int64_t r = -EINTR;

	if (first > last)
		return pass(c, atomic_load(&client->owns));
	if (!(mine = malloc((last - first + 1) * sizeof *mine)))
		return -ENOMEM;
	for (fd = first; fd <= last && let_go(client, fd, &mine[fd - first]); fd++)
		;
	if (fd > last)
		r = pass(c, atomic_load(&client->owns));
	while (fd-- > first)
		has_let_go(client, fd, mine[fd - first], r ? mine[fd - first] & INSIDE : 0);
	free(mine);
	return r;
}

int64_t on_close_range(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	uint32_t first = lind_arg32(c, 0), last = lind_arg32(c, 1);
	int64_t r;

	if (lind_arg32(c, 2) & CLOSE_RANGE_CLOEXEC)
		return pass(c, atomic_load(&client->owns));
	if (!letting_begins(client))
		return -EINTR;
	if (atomic_load(&client->threads))
		r = close_range_while_it_changes(c, client);
	else {
		r = pass(c, atomic_load(&client->owns));
		for (uint32_t fd = first, end = fds_end(client); !r && fd < end && fd <= last; fd++)
			has_let_go(client, fd, 0, 0);
	}
	letting_ends(client);
	return r;
}

int64_t on_dup(const struct lind_call *c)
{
	return made_of(c, moving_begins, moving_ends);
}

/* Also where only the new one is inside: it is closed. */
static int64_t dup_onto(const struct lind_call *c, struct client *client, bool same)
{
	bool inside = fd_inside(c->args[0]), replaces = fd_inside(c->args[1]);
	uint32_t to = lind_arg32(c, 1), mine;
	int64_t fd;

	if (same)
		return pass(c, inside);
	if (!let_go(client, to, &mine))
		return -EINTR;
	fd = inside || replaces ? enter(c) : go_past(c, 1);
	if (fd >= 0 && inside)
		fd_mark(client, to);
	if (!has_let_go(client, to, mine, fd < 0 ? mine & INSIDE : inside ? INSIDE : HELD) && fd >= 0 && !inside)
		fd_outside(client, (uint64_t)fd, mine & WORD_COUNT);
	/* It may have got a flag while we were at it. */
	if (fd >= 0 && !inside && by_property)
		fd_made_outside(client, to);
	return fd;
}

int64_t on_dup2(const struct lind_call *c)
{
	struct client *client = c->args[1].cage ? lind_client(c->args[1].cage) : NULL;
	bool same = c->args[0].cage == c->args[1].cage && lind_arg32(c, 0) == lind_arg32(c, 1);
	int64_t fd;

	if (!letting_begins(client))
		return -EINTR;
	moving_begins(client);
	fd = dup_onto(c, client, same);
	moving_ends(client);
	letting_ends(client);
	return fd;
}

/* All clients that share the file have the flag, too, whatever its number there, and whichever
 * file is at the caller's number by now. */
static int64_t flags_set(int64_t r)
{
	if (r >= 0)
		each_client(mark_what_matches);
	return r;
}

static int64_t on_set_flags(const struct lind_call *c)
{
	return flags_set(pass(c, fd_inside(c->args[0])));
}

int64_t on_fcntl(const struct lind_call *c)
{
	if (lind_arg32(c, 1) == F_SETFL && flags_change)
		return on_set_flags(c);
	return lind_arg32(c, 1) == F_DUPFD || lind_arg32(c, 1) == F_DUPFD_CLOEXEC ? on_dup(c) : on_number(c);
}

/* FIONBIO; on_control_past if no ioctl enters. */
int64_t on_control(const struct lind_call *c)
{
	int64_t r = on_fd(c);

	return lind_arg32(c, 1) == FIONBIO ? flags_set(r) : r;
}

int64_t on_control_past(const struct lind_call *c)
{
	int64_t r = lind_forward(c);

	return lind_arg32(c, 1) == FIONBIO ? flags_set(r) : r;
}

static bool may_own(const struct client *client)
{
	return by_property || atomic_load(&client->owns);
}

static bool in_set(const struct client *client, uint32_t fd)
{
	return fd < LIND_FDS && fd_inside((struct lind_arg){ fd, client->cage });
}

/*
 * Descriptors in a set are those of the cage that the set is in, so the set itself goes on. A
 * client that changes it meanwhile learns whether a descriptor is ready, and nothing else.
 */
int64_t on_poll(const struct lind_call *c)
{
	struct client *client = lind_client(c->args[0].cage);
	uint64_t count = c->args[1].value;
	struct pollfd some[64];

	if (!client || !may_own(client) || count > POLL_MAX)
		return lind_forward(c);
	for (uint64_t at = 0; at < count; at += 64) {
		size_t n = count - at < 64 ? (size_t)(count - at) : 64;

		if (lind_read(lind_at(c->args[0], at * sizeof *some), some, n * sizeof *some))
			break;
		for (size_t i = 0; i < n; i++)
			if (some[i].fd >= 0 && in_set(client, (uint32_t)some[i].fd))
				return enter(c);
	}
	return lind_forward(c);
}

int64_t on_select(const struct lind_call *c)
{
	uint32_t count = lind_arg32(c, 0) > FDS_SET_MAX ? FDS_SET_MAX : lind_arg32(c, 0);
	uint32_t set[FDS_SET_MAX / 32];

	for (int i = 1; i <= 3 && (int32_t)lind_arg32(c, 0) > 0; i++) {
		struct client *client = lind_client(c->args[i].cage);

		if (!c->args[i].value || !client || !may_own(client) ||
		    lind_read(c->args[i], set, (count + 31) / 32 * 4))
			continue;
		for (uint32_t fd = 0; fd < count; fd++)
			if (set[fd / 32] >> fd % 32 & 1 && in_set(client, fd))
				return enter(c);
	}
	return lind_forward(c);
}

/* Once something inside is mapped, what becomes of any range may concern it. */
int64_t on_mmap(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	bool inside = !(lind_arg32(c, 3) & MAP_ANONYMOUS) && fd_inside(c->args[4]);

	if (inside)
		atomic_store(&client->mapped, true);
	if (inside || atomic_load(&client->mapped))
		return enter(c);
	return lind_arg32(c, 3) & MAP_ANONYMOUS ? lind_forward(c) : go_past(c, 1u << 4);
}

int64_t on_memory(const struct lind_call *c)
{
	return pass(c, atomic_load(&((struct client *)lind_client(c->target))->mapped));
}
