/* Serving calls that take paths: what was walked and decided about is what the call is made on
 * (act.c). */
#include "act.h"

/* How often a walk is made again when a link appeared where it had found none. */
#define PATIENCE 16

const struct lind_file_use *lind_file_use(uint32_t nr)
{
	size_t low = 0, high = sizeof lind_file_uses / sizeof *lind_file_uses;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (lind_file_uses[middle].nr == nr)
			return &lind_file_uses[middle];
		if (lind_file_uses[middle].nr < nr)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static unsigned open_effect(uint32_t flags, const struct lind_place *place)
{
	unsigned effect = 0;

	if (flags & O_PATH)
		return LIND_DOES_READ;
	if ((flags & O_ACCMODE) != O_WRONLY)
		effect |= LIND_DOES_READ;
	if (flags & O_ACCMODE || flags & O_TRUNC)
		effect |= LIND_DOES_WRITE;
	if ((flags & O_CREAT && place->object < 0) || (flags & (O_TMPFILE & ~O_DIRECTORY)))
		effect |= LIND_DOES_CREATE;
	return effect;
}

static uint32_t at_flags(const struct served *s, const struct lind_path_use *path)
{
	return path->flags < 0 ? 0 : lind_arg32(s->c, path->flags);
}

static bool takes_empty(uint32_t nr)
{
	switch (nr) {
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_faccessat2:
	case SYS_fchmodat2:
	case SYS_fchownat:
	case SYS_utimensat:
	case SYS_linkat:
	case SYS_execveat:
	case SYS_name_to_handle_at:
		return true;
	default:
		return false;
	}
}

/* The flags that Linux knows; others are EINVAL, and before anything is looked at. */
static bool has_unknown_flags(const struct lind_call *c)
{
	switch (c->nr) {
	case SYS_unlinkat:
		return lind_arg32(c, 2) & ~AT_REMOVEDIR;
	case SYS_linkat:
		return lind_arg32(c, 4) & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH);
	case SYS_fchownat:
		return lind_arg32(c, 4) & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
	case SYS_utimensat:
	case SYS_fchmodat2:
		return lind_arg32(c, 3) & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
	case SYS_faccessat2:
		return lind_arg32(c, 3) & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_REMOVEDIR /* AT_EACCESS */);
	case SYS_renameat2:
		return lind_arg32(c, 4) & ~3u || (lind_arg32(c, 4) & 3) == 3;
	case SYS_setxattr:
	case SYS_lsetxattr:
		return lind_arg32(c, 4) & ~3u;
	default:
		return false;
	}
}

/* chroot of a directory that a grate nearer to the client has found, and names by a descriptor of
 * its own. */
static bool found_before(const struct served *s, int i)
{
	return s->c->nr == SYS_chroot && s->c->args[1].cage != s->c->target && !s->text[i][0];
}

static unsigned how(const struct served *s, int i)
{
	const struct lind_path_use *path = &s->use->path[i];
	uint32_t flags = at_flags(s, path);
	unsigned how = 0;

	switch (path->end) {
	case LIND_END_FOLLOW:
		how = LIND_WALK_FOLLOW;
		break;
	case LIND_END_UNLESS_AT:
		how = flags & AT_SYMLINK_NOFOLLOW ? 0 : LIND_WALK_FOLLOW;
		break;
	case LIND_END_IF_AT:
		how = flags & AT_SYMLINK_FOLLOW ? LIND_WALK_FOLLOW : 0;
		break;
	case LIND_END_OPEN:
		flags = open_flags(s->c);
		how = flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ? 0 : LIND_WALK_FOLLOW;
		break;
	case LIND_END_WATCH:
		how = flags & IN_DONT_FOLLOW ? 0 : LIND_WALK_FOLLOW;
		break;
	}
	if (path->effect & (LIND_DOES_CREATE | LIND_DOES_REMOVE))
		how |= LIND_WALK_NAME;
	/* readlinkat means a link that is open by an empty path without a flag. */
	if ((takes_empty(s->c->nr) && flags & AT_EMPTY_PATH && path->effect != LIND_DOES_CREATE) ||
	    s->c->nr == SYS_readlinkat || found_before(s, i))
		how |= LIND_WALK_EMPTY;
	return how;
}

/* utimensat that sets neither time looks nothing up. */
static bool sets_no_time(const struct lind_call *c)
{
	struct timespec times[2];

	return c->nr == SYS_utimensat && c->args[2].value && !lind_read(c->args[2], times, sizeof times) &&
	    times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT;
}

/* Copies the paths. 1 if the call has none after all: utimensat by a descriptor. */
static int copy_paths(struct served *s)
{
	for (int i = 0; i < s->use->paths; i++) {
		struct lind_arg at = s->c->args[s->use->path[i].path];
		ssize_t r;

		if (s->c->nr == SYS_utimensat && !at.value)
			return 1;
		if ((r = lind_read_string(at, s->text[i], PATH_MAX)) < 0)
			return (int)r;
		if (s->use->path[i].end == LIND_END_TEXT && !r)
			return -ENOENT;
	}
	return 0;
}

static struct lind_arg start(const struct served *s, int i)
{
	int dir = found_before(s, i) ? 1 : s->use->path[i].dir;

	return dir < 0 ? client(s, (uint64_t)(int64_t)AT_FDCWD) : s->c->args[dir];
}

static bool must_exist(const struct served *s, int i)
{
	unsigned effect = s->use->path[i].effect;

	if (effect & LIND_DOES_OPEN)
		return !(open_flags(s->c) & O_CREAT) || open_flags(s->c) & O_PATH;
	return !(effect & (LIND_DOES_CREATE | LIND_DOES_REMOVE));
}

static int decide_all(struct served *s, lind_path_decide_fn *decide, void *arg)
{
	int r = 0;

	/* As on Linux, the name that is to be made is looked at first. */
	for (int i = s->use->paths; i-- > 0 && !r && decide;) {
		unsigned effect = s->use->path[i].effect;

		if (s->use->path[i].end == LIND_END_TEXT)
			continue;
		if (effect & LIND_DOES_OPEN)
			effect = open_effect(open_flags(s->c), &s->place[i]);
		r = decide(s->c, effect, &s->place[i], arg);
	}
	return r;
}

/* Paths that the view has bound stay, as mount points do. */
static int check_view(const struct served *s, int i)
{
	const struct lind_place *place = &s->place[i];
	unsigned effect = s->use->path[i].effect;

	if (!s->view)
		return 0;
	if (effect & LIND_DOES_REMOVE && lind_view_is_fixed(s->view, place->path))
		return -EBUSY;
	if (effect & LIND_DOES_LINK && place->bound)
		return -EXDEV;
	return effect == LIND_DOES_CREATE && place->bound ? -EEXIST : 0;
}

/* Walks, decides, acts. */
static int64_t attempt(struct served *s, const struct lind_view *view, lind_path_decide_fn *decide, void *arg)
{
	int64_t r = 0;
	int walked = 0;

	for (; walked < s->use->paths && !r; walked++) {
		struct lind_place *place = &s->place[walked];

		if (s->use->path[walked].end == LIND_END_TEXT) {
			place->dir = place->object = -1;
			continue;
		}
		if ((r = lind_path_walk(view, s->c->target, start(s, walked), s->text[walked], how(s, walked), place)))
			break;
		if (place->object < 0 && must_exist(s, walked))
			r = -ENOENT;
		else if (place->slash && place->object >= 0 && !S_ISDIR(place->st.st_mode) &&
		    s->use->path[walked].effect & LIND_DOES_REMOVE)
			r = -ENOTDIR;
		else
			r = check_view(s, walked);
	}
	if (!r)
		r = decide_all(s, decide, arg);
	if (!r)
		r = lind_path_act(s);
	while (walked-- > 0)
		lind_place_done(&s->place[walked]);
	return r;
}

/* Whether a link appeared at the end after the walk: then the call is as if it had come later. */
static bool moved(const struct served *s, int64_t r)
{
	return r == -ELOOP && s->use->path[0].end == LIND_END_OPEN && how(s, 0) & LIND_WALK_FOLLOW;
}

int64_t lind_path_call(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg)
{
	struct served s = { .c = c, .use = lind_file_use(c->nr), .view = view };
	int64_t r;

	if (!s.use || !s.use->paths)
		return -ENOSYS;
	if (s.use->absent)
		return -(int64_t)s.use->absent;
	/* Its flags are where the client can still change them, and say how to walk besides. */
	if (c->nr == SYS_openat2)
		return -ENOSYS;
	if (has_unknown_flags(c))
		return -EINVAL;
	if (sets_no_time(c))
		return 0;
	if ((r = copy_paths(&s)) < 0)
		return r;
	if (r)
		return lind_path_fd_call(c, view, decide, arg);
	for (int i = 0; (r = attempt(&s, view, decide, arg)), i < PATIENCE && moved(&s, r); i++)
		;
	return r;
}

int64_t lind_path_fd_call(
    const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg)
{
	const struct lind_file_use *use = lind_file_use(c->nr);
	struct lind_place place;
	struct lind_call held = *c;
	unsigned effect = use && use->fds ? use->fd[0].effect : LIND_DOES_META;
	int at = use && use->fds ? use->fd[0].fd : 0;
	int64_t r;

	if ((r = lind_path_of_fd(view, c->args[at], &place)))
		return r;
	if (decide)
		r = decide(c, effect, &place, arg);
	held.args[at] = number((uint64_t)place.object);
	if (!r)
		r = lind_forward(&held);
	lind_place_done(&place);
	return r;
}
