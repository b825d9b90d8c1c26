/* Calls that take paths. They go on with the text that was decided on, from our memory. */
#include <fcntl.h>
#include <lind/openat2.h>
#include <lind/path_table.h>
#include <lind/paths.h>
#include <sys/inotify.h>
#include "calls.h"
#include "kinds.h"
#include "paths.h"
#include "where.h"
#include "words.h"

static bool by_text;

const char *set_by_text(const char *value)
{
	(void)value;
	by_text = true;
	return NULL;
}

static uint32_t flags_of(const struct lind_call *c, const struct lind_path_use *use)
{
	if (c->nr == SYS_creat)
		return LIND_CREAT_FLAGS;
	return use->flags < 0 ? 0 : lind_arg32(c, use->flags);
}

static bool follows(const struct lind_call *c, const struct lind_path_use *use)
{
	uint32_t flags = flags_of(c, use);

	switch ((enum lind_end)use->end) {
	case LIND_END_FOLLOW:
		return true;
	case LIND_END_UNLESS_AT:
		return !(flags & AT_SYMLINK_NOFOLLOW);
	case LIND_END_IF_AT:
		return flags & AT_SYMLINK_FOLLOW;
	case LIND_END_OPEN:
		return !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	case LIND_END_WATCH:
		return !(flags & IN_DONT_FOLLOW);
	default:
		return false;
	}
}

static bool makes_fd(uint32_t nr)
{
	return nr == SYS_open || nr == SYS_openat || nr == SYS_openat2 || nr == SYS_creat;
}

/* Whether our copy of the text goes on, which the client cannot change. A grate in Lind's style
 * needs the client's own. */
static bool ours(const struct where *w)
{
	return !w->start_only && (w->rewritten || !w->inside || !lind_style_inside(0));
}

/* All paths of a call: whether they are inside; -EXDEV if one is and another not. */
static int look_all(const struct lind_call *c, struct lind_call *changed, struct where where[2], bool *inside)
{
	const struct lind_file_use *use = lind_file_use(c->nr);
	int seen = 0, within = 0, r;

	for (int i = 0; use && i < use->paths; i++) {
		const struct lind_path_use *p = &use->path[i];

		if (p->end == LIND_END_TEXT)
			continue;
		if ((r = look(c, p->dir, p->path, follows(c, p), &where[i])))
			return r;
		if (ours(&where[i]))
			changed->args[p->path] = lind_mine(where[i].text);
		if (p->effect & (LIND_DOES_REMOVE | LIND_DOES_MOUNT) && *where[i].path && above_a_prefix(where[i].path))
			return -EBUSY;
		seen++;
		within += where[i].inside;
	}
	*inside = within;
	return within && within < seen ? -EXDEV : 0;
}

/* Found by descriptors, it is below a prefix after all: a link has been put there since we
 * looked. */
static int still_outside(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg)
{
	(void)c;
	(void)effect;
	(void)arg;
	return below_a_prefix(place->path) ? -EAGAIN : 0;
}

static int64_t go(const struct lind_call *c, bool inside)
{
	return inside || by_text ? pass(c, inside) : lind_path_call(c, NULL, still_outside, NULL);
}

int64_t on_path(const struct lind_call *call)
{
	struct lind_call made = *call, changed;
	const struct lind_call *c = &made;
	struct client *client = lind_client(c->target);
	struct where where[2];
	uint32_t since = fd_since(client);
	bool inside = false;
	int64_t r;

	if (call->nr == SYS_openat2 && (r = lind_openat2_plain(&made)))
		return r;
	changed = made;
	if ((r = look_all(c, &changed, where, &inside)))
		return r;
	if (!makes_fd(c->nr))
		return go(&changed, inside);
	if (inside)
		making_begins(client);
	else if (by_property)
		waiting_begins(client);
	if ((r = go(&changed, inside)) >= 0 && inside)
		fd_mark(client, (uint64_t)r);
	else if (r >= 0)
		fd_outside(client, (uint64_t)r, since);
	if (inside || by_property)
		making_ends(client);
	return r;
}

/* The grates inside do not see a client go out: the directory may not exist for them. */
int64_t on_chdir(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	struct lind_call changed = *c;
	struct where where;
	int64_t r;

	if ((r = look(c, -1, 0, true, &where)))
		return r;
	if (ours(&where))
		changed.args[0] = lind_mine(where.text);
	r = go(&changed, where.inside);
	if (r >= 0 && (where.inside || client->cwd_inside))
		client_cwd(client, where.inside, where.path);
	return r;
}

int64_t on_fchdir(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	bool inside = fd_inside(c->args[0]), before = client->cwd_inside;
	int64_t r = pass(c, inside);

	if (r >= 0 && (inside || before))
		client_cwd(client, inside, NULL);
	return r;
}

int64_t on_getcwd(const struct lind_call *c)
{
	return pass(c, ((struct client *)lind_client(c->target))->cwd_inside);
}
