/*
 * Calls about which a rule wants to know a path or an address. What is decided upon is a copy in our memory, made once, and
 * the copy is what is passed on: what the client writes over the original meanwhile changes nothing.
 */
#include <errno.h>
#include <lind/transfer.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

#define FDCWD (-100)

/* A call with its copies. */
struct copied {
	struct lind_call call;
	uint32_t as;			/* the call whose rules decide */
	unsigned paths;
	bool known[2];			/* it is known where the path leads */
	char path[2][PATH_MAX];
	bool has_address;
	size_t address_length;
	struct sockaddr_storage address;
};

/* Where a relative path begins, without a slash at its end. False if that is not to be found out. */
static bool base_of(const struct lind_call *c, const struct lind_arg *dir, char *to)
{
	struct lind_arg none = { 0, c->target };
	char link[40];
	int64_t n;

	if (!dir || (int32_t)dir->value == FDCWD) {
		n = lind_call(SYS_getcwd, c->target, lind_mine(to), (struct lind_arg){ PATH_MAX, c->target }, none, none, none, none);
		if (n <= 0)
			return false;
		n--;
	} else {
		/* A descriptor's number means something in one cage only. */
		if (dir->cage != c->target)
			return false;
		snprintf(link, sizeof link, "/proc/self/fd/%d", (int32_t)dir->value);
		n = lind_call(SYS_readlink, c->target, lind_mine(link), lind_mine(to), (struct lind_arg){ PATH_MAX - 1, c->target }, none, none,
			none);
		if (n <= 0)
			return false;
	}
	to[n] = 0;
	if (n > 1 && to[n - 1] == '/')
		n--;
	to[n == 1 ? 0 : n] = 0;
	return to[0] == 0 || to[0] == '/';
}

/*
 * Makes a path absolute, without `.`, `//` and those `..` that lead above a directory known to be no link. 0, -ENAMETOOLONG,
 * or 1 for a path of which it is not known where it leads.
 */
static int absolute(const struct lind_call *c, const struct lind_arg *dir, char *path)
{
	char whole[PATH_MAX];
	const char *from = path;
	size_t used = 0, sure;

	whole[0] = 0;
	if (!*path || (*path != '/' && !base_of(c, dir, whole)))
		return 1;
	sure = used = strlen(whole);
	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && from[0] == '.' && from[1] == '.') {
			if (used > sure)
				return 1;
			while (used && whole[used - 1] != '/')
				used--;
			used -= used > 0;
			sure = used;
		} else if (n && !(n == 1 && *from == '.')) {
			if (used + n + 2 > sizeof whole)
				return -ENAMETOOLONG;
			whole[used++] = '/';
			memcpy(whole + used, from, n);
			used += n;
		}
		from += n;
		from += strspn(from, "/");
	}
	/* What a slash at the end asks for stays. */
	if (!used || (path[strlen(path) - 1] == '/' && used + 2 < sizeof whole))
		whole[used++] = '/';
	whole[used] = 0;
	memcpy(path, whole, used + 1);
	return 0;
}

/* The target of a symbolic link is a text; it is looked at when the link is followed. */
static bool is_text(const struct lind_syscall *row, int i)
{
	return (row->nr == SYS_symlink || row->nr == SYS_symlinkat) && i == 0;
}

static int64_t copy_path(struct copied *to, const struct lind_syscall *row, int i)
{
	const struct lind_call *c = &to->call;
	struct lind_arg arg = c->args[i];
	const struct lind_arg *dir = i && row->args[i - 1].kind == LIND_DIRFD ? &c->args[i - 1] : NULL;
	char *path = to->path[to->paths];
	ssize_t length;
	int r;

	/* No path: the call is about the descriptor itself, or fails. */
	if (!arg.value) {
		to->known[to->paths] = false;
		path[0] = 0;
		to->paths++;
		return 0;
	}
	length = lind_read_string(arg, path, PATH_MAX);
	if (length < 0)
		return length;
	to->call.args[i] = lind_mine(path);
	if (is_text(row, i))
		return 0;
	if ((r = absolute(c, dir, path)) < 0)
		return r;
	to->known[to->paths++] = !r;
	return 0;
}

/* Nobody's address stands for this host, when it is connected to. */
static void name_this_host(struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (void *)address;
	struct sockaddr_in6 *in6 = (void *)address;

	if (address->ss_family == AF_INET && !in->sin_addr.s_addr)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (address->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		in6->sin6_addr = in6addr_loopback;
}

static int64_t copy_address(struct copied *to, int i)
{
	struct lind_arg arg = to->call.args[i];
	uint32_t length = (uint32_t)to->call.args[i + 1].value;
	int r;

	if (!arg.value)
		return 0;
	if (length > sizeof to->address)
		return -EINVAL;
	memset(&to->address, 0, sizeof to->address);
	if ((r = lind_read(arg, &to->address, length)))
		return r;
	if (to->call.nr != SYS_bind)
		name_this_host(&to->address);
	to->has_address = true;
	to->address_length = length;
	to->call.args[i] = lind_mine(&to->address);
	return 0;
}

static bool path_matches(const struct patterns *p, const struct copied *to, unsigned i)
{
	char whole[PATH_MAX];
	size_t n = strlen(to->path[i]);

	memcpy(whole, to->path[i], n + 1);
	if (n > 1 && whole[n - 1] == '/')
		whole[n - 1] = 0;
	for (size_t k = 0; k < p->path_count; k++)
		if (glob(p->paths[k], whole))
			return true;
	return false;
}

/*
 * A rule that allows has to match all that the call is about, one that forbids any of it; a path that leads nobody knows where is
 * allowed by none and forbidden by all.
 */
static bool matches(const struct step *s, const struct copied *to)
{
	const struct patterns *p = s->patterns;
	bool strict = s->action >= DENY, any = false, all = true;

	if (!p)
		return true;
	for (unsigned i = 0; p->path_count && i < to->paths; i++) {
		bool match = to->known[i] ? path_matches(p, to, i) : strict;

		any |= match;
		all &= match;
	}
	if (p->address_count && to->has_address) {
		bool match = false;

		for (size_t k = 0; k < p->address_count && !match; k++)
			match = address_matches(&p->addresses[k], &to->address, to->address_length);
		any |= match;
		all &= match;
	}
	return strict ? any : all;
}

static const struct step *decide_copied(const struct copied *to)
{
	const struct step *s = steps_of(to->as);

	while (!s->last && !(all_hold(s, &to->call) && matches(s, to)))
		s++;
	return s;
}

static int64_t carry_out(const struct copied *to)
{
	const struct step *s = decide_copied(to);

	return s->action == ALLOW ? lind_forward(&to->call) : refuse(&to->call, s);
}

static int64_t look(const struct lind_call *c, uint32_t as)
{
	const struct lind_syscall *row = syscall_of(c->nr);
	struct copied to;
	int64_t r;

	to.call = *c;
	to.as = as;
	to.paths = 0;
	to.has_address = false;
	for (int i = 0; i < row->count; i++) {
		if (row->args[i].kind == LIND_PATH)
			r = copy_path(&to, row, i);
		else if (row->args[i].kind == LIND_IN && row->args[i].layout == LIND_LAYOUT_SOCKADDR)
			r = copy_address(&to, i);
		else
			continue;
		if (r)
			return r;
	}
	return carry_out(&to);
}

int64_t on_looking_call(const struct lind_call *c)
{
	return look(c, c->nr);
}

int64_t on_spawned_path(const struct lind_call *c)
{
	return look(c, SYS_execve);
}

/* A message, with the flags of its call at `flags`; the decision is that of call `nr`. */
static int64_t pass_message(const struct lind_call *c, uint32_t nr)
{
	struct lind_message m;
	struct copied to;
	const struct step *s;
	int64_t r;

	to.call = *c;
	to.as = nr;
	to.paths = 0;
	to.has_address = false;
	if ((r = lind_message_sent(&m, c->args[1])))
		return r;
	if (m.own.msg_name) {
		to.has_address = true;
		memset(&to.address, 0, sizeof to.address);
		to.address_length = m.own.msg_namelen < sizeof to.address ? m.own.msg_namelen : sizeof to.address;
		memcpy(&to.address, m.own.msg_name, to.address_length);
		name_this_host(&to.address);
		memcpy(m.own.msg_name, &to.address, to.address_length);
	}
	to.call.nr = nr;
	if (nr == SYS_sendmmsg) {
		to.call.args[3] = c->args[2];
		to.call.args[2].value = 1;
	}
	s = decide_copied(&to);
	if (s->action == LOG)
		explain(&to.call, s);
	r = s->action >= DENY ? refuse(&to.call, s) : lind_message_pass(&m, c, c->args[2].value);
	lind_message_free(&m);
	return r;
}

int64_t on_sendmsg(const struct lind_call *c)
{
	return pass_message(c, SYS_sendmsg);
}

static int64_t on_one_of_many(const struct lind_call *c)
{
	return pass_message(c, SYS_sendmmsg);
}

int64_t on_sendmmsg(const struct lind_call *c)
{
	return lind_message_each(c, on_one_of_many);
}
