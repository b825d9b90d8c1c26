/* A policy that lets clients change only some files. */
#include <dirent.h>
#include <lind/fds.h>
#include <lind/guard.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../core/sdk.h"
#include "guard.h"
#include "walk.h"

#define DESCRIPTORS 4096 /* that a grate may be started with */
/* Device numbers that stat returns for the kernel's own trees. */
#define PTS_DEVICE 0xfff000fbu /* the lowest of them: /dev/pts, /dev/shm, /sys, /proc, /dev */
#define DEV_DEVICE 0xfff000ffu

#define GIVEN 64  /* descriptors that are remembered of those that the grate was started with */

static const struct lind_guard *guard;
/* The descriptors that the user has opened for the program. */
static int given[GIVEN] = { 0, 1, 2 };
static size_t given_count = 3;

/* Whether nothing leads to a file but descriptors: its names have gone, or it never had one. If
 * a call gives it a name, the guard is asked about that name. */
static bool has_no_name(const struct stat *st)
{
	return !st->st_nlink && (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
}

/*
 * A file in memory is in no tree, nor are pipes and the like, nor files that nothing leads to.
 * Another file whose name is not known may be in any: it was handed in from outside, or belongs to
 * a grate that keeps files itself.
 */
bool guard_in_a_tree(const struct lind_place *place)
{
	mode_t kind = place->st.st_mode;

	if (place->object >= 0 && !S_ISREG(kind) && !S_ISDIR(kind) && !S_ISLNK(kind))
		return place->path[0] == '/';
	if (place->dir < 0 && place->object >= 0 && has_no_name(&place->st))
		return false;
	if (place->dir >= 0 || place->object < 0 || !S_ISREG(kind))
		return true;
	return own(SYS_fcntl, (uint64_t)place->object, F_GET_SEALS, 0, 0) < 0;
}

/* Whether a path may be changed. A file without a path may not. */
static bool may_change(const char *path, unsigned effect)
{
	return !guard->may_change || (*path == '/' && guard->may_change(path, effect));
}

/* Whether whatever is in a directory may be changed, as far as names that nobody uses can tell. */
static bool may_change_all_in(const char *directory, unsigned effect)
{
	static const char *const anything[] = { "/\001", "/\001/\001", "/\001/\001/\001.\001" };
	char path[LIND_PATH_MAX + 16];

	if (guard->may_move_all_in && !guard->may_move_all_in(directory))
		return false;
	for (size_t i = 0; i < sizeof anything / sizeof *anything; i++) {
		snprintf(path, sizeof path, "%s%s", strcmp(directory, "/") ? directory : "", anything[i]);
		if (!may_change(path, effect))
			return false;
	}
	return true;
}

static bool is_special(const struct lind_place *place)
{
	return place->object >= 0 && !S_ISREG(place->st.st_mode) && !S_ISDIR(place->st.st_mode) &&
	    !S_ISLNK(place->st.st_mode);
}

/*
 * Whether it is in the kernel's own /dev or /proc, which hold nothing that lasts, and where the
 * kernel says what may be changed. Known by the device number: in another root those names may be
 * anything.
 */
bool guard_is_kernels(const struct lind_place *place)
{
	struct stat st;

	return place->dir >= 0 && !own(SYS_fstat, (uint64_t)place->dir, (uintptr_t)&st, 0, 0) &&
	    st.st_dev >= PTS_DEVICE && st.st_dev <= DEV_DEVICE;
}

/* A file without a name has one when it is asked about: in its directory. */
static bool may_change_in(const char *directory, unsigned effect)
{
	char path[LIND_PATH_MAX + 2];

	snprintf(path, sizeof path, "%s/#", strcmp(directory, "/") ? directory : "");
	return may_change(path, effect);
}

static bool is_open(uint32_t nr)
{
	return nr == SYS_open || nr == SYS_openat || nr == SYS_creat;
}

/* The files in it then have other paths, where more may be allowed than at the old ones. */
bool guard_moves_a_directory(uint32_t nr, unsigned effect, const struct lind_place *place)
{
	bool renames = nr == SYS_rename || nr == SYS_renameat || nr == SYS_renameat2;

	return renames && effect & LIND_DOES_REMOVE && place->object >= 0 && S_ISDIR(place->st.st_mode);
}

/* rename to a name that is there, and is not to be replaced. */
static bool finds_its_name_taken(const struct lind_call *c, unsigned effect, const struct lind_place *place)
{
	return c->nr == SYS_renameat2 && lind_arg32(c, 4) & RENAME_NOREPLACE && effect & LIND_DOES_CREATE &&
	    place->object >= 0;
}

/* rmdir of a directory that has something in it: three entries, of which two are its own and its
 * parent's. */
static bool finds_something_in_it(const struct lind_call *c, const struct lind_place *place)
{
	char entries[4096];
	int64_t fd, size;
	size_t count = 0;

	if (!(c->nr == SYS_rmdir || (c->nr == SYS_unlinkat && lind_arg32(c, 2) & AT_REMOVEDIR)) || place->object < 0)
		return false;
	fd = own(SYS_openat, (uint64_t)place->object, (uintptr_t)".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	size = own(SYS_getdents64, (uint64_t)fd, (uintptr_t)entries, sizeof entries, 0);
	own_close((int)fd);
	for (int64_t at = 0; at < size && count <= 2; count++)
		at += ((struct dirent *)(entries + at))->d_reclen;
	return count > 2;
}

/* Writing to a file is like creating it: where no file may be created, none may be written to. */
static unsigned with_contents(unsigned effect, const struct lind_place *place)
{
	return effect & LIND_DOES_WRITE && place->object >= 0 && S_ISREG(place->st.st_mode) ? effect | LIND_DOES_CREATE
											    : effect;
}

/* A directory that comes or goes with nothing in it. */
static bool is_empty_one(const struct lind_call *c)
{
	return c->nr == SYS_mkdir || c->nr == SYS_mkdirat || c->nr == SYS_rmdir ||
	    (c->nr == SYS_unlinkat && lind_arg32(c, 2) & AT_REMOVEDIR);
}

/*
 * Whether a file is one that the grate was started with to be written to, as the clients were: it
 * may be opened again, as for /dev/stderr, and truncated. A file inside the tree counts only if
 * such descriptors stay as they are.
 */
static bool was_given(unsigned effect, const struct lind_place *place)
{
	struct stat st;

	if ((*place->path == '/' && !guard->keeps_given) || place->object < 0 ||
	    effect & ~(LIND_DOES_WRITE | LIND_DOES_CREATE))
		return false;
	for (size_t i = 0; i < given_count; i++) {
		uint64_t fd = (uint64_t)given[i];
		int64_t flags = own(SYS_fcntl, fd, F_GETFL, 0, 0);

		if (flags >= 0 && flags & O_ACCMODE && !(flags & O_PATH) && !own(SYS_fstat, fd, (uintptr_t)&st, 0, 0) &&
		    st.st_dev == place->st.st_dev && st.st_ino == place->st.st_ino)
			return true;
	}
	return false;
}

/* Where a rename may end that changes nothing. */
struct same {
	const struct lind_place *from;
	bool found;
};

/* Most of a file that is compared. */
#define COMPARED (1u << 20)

/* Whether two files say the same. The client has to be able to read both: it learns what comes
 * of it. */
static bool say_the_same(uint64_t target, const struct lind_place *one, const struct lind_place *other)
{
	char name[2][40], text[2][4096];
	int64_t fd[2], n = 0, at = 0;
	bool same = false;

	if (!S_ISREG(one->st.st_mode) || !S_ISREG(other->st.st_mode) || one->st.st_size != other->st.st_size ||
	    one->st.st_size > COMPARED || one->st.st_mode != other->st.st_mode || one->st.st_uid != other->st.st_uid ||
	    one->st.st_gid != other->st.st_gid || lind_client_may(target, one->object, R_OK) ||
	    lind_client_may(target, other->object, R_OK))
		return false;
	for (int i = 0; i < 2; i++) {
		snprintf(name[i], sizeof name[i], "/proc/self/fd/%d", (i ? other : one)->object);
		fd[i] = own(
		    SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)name[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	}
	while (fd[0] >= 0 && fd[1] >= 0 && at <= COMPARED) {
		n = own(SYS_pread64, (uint64_t)fd[0], (uintptr_t)text[0], sizeof text[0], (uint64_t)at);
		if (n < 0 || own(SYS_pread64, (uint64_t)fd[1], (uintptr_t)text[1], sizeof text[1], (uint64_t)at) != n)
			break;
		if ((same = !n) || memcmp(text[0], text[1], (size_t)n))
			break;
		at += n;
	}
	own_close((int)fd[0]);
	own_close((int)fd[1]);
	return same;
}

static bool is_plain_rename(const struct lind_call *c)
{
	return c->nr == SYS_rename || c->nr == SYS_renameat || (c->nr == SYS_renameat2 && !lind_arg32(c, 4));
}

/* A file in the place of one that says the same, as git writes its settings: that changes
 * nothing but takes the old name away. */
static bool puts_the_same(const struct lind_call *c, unsigned effect, const struct lind_place *place, struct same *same)
{
	same->found = is_plain_rename(c) && effect & LIND_DOES_CREATE && place->object >= 0 &&
	    same->from->object >= 0 &&
	    (place->st.st_dev != same->from->st.st_dev || place->st.st_ino != same->from->st.st_ino) &&
	    say_the_same(c->target, same->from, place);
	return same->found;
}

static int decide(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg)
{
	bool asks = c->nr == SYS_access || c->nr == SYS_faccessat || c->nr == SYS_faccessat2;

	int may = guard_may_read(guard, c, effect, place), said = LIND_TOLD;

	if (may < 0)
		return may;
	if (asks)
		effect = lind_arg32(c, c->nr == SYS_access ? 1 : 2) & W_OK ? LIND_DOES_WRITE : 0;
	if (!(effect & LIND_CHANGES) || !guard_in_a_tree(place) || guard_is_kernels(place) ||
	    (is_open(c->nr) && was_given(effect, place)))
		return 0;
	if (is_empty_one(c))
		effect |= LIND_DOES_EMPTY;
	/* Neither can be opened to be written to: the kernel says why. */
	if (is_open(c->nr) && place->object >= 0 &&
	    (S_ISLNK(place->st.st_mode) || (S_ISDIR(place->st.st_mode) && !(effect & LIND_DOES_CREATE))))
		return 0;
	/* Devices, fifos and sockets are not files to write to. */
	if (!(effect & LIND_CHANGES & ~LIND_DOES_WRITE) && is_special(place))
		return 0;
	if ((is_open(c->nr) && place->object >= 0 && S_ISDIR(place->st.st_mode)
		    ? may_change_in(place->path, effect)
		    : may_change(place->path, with_contents(effect, place)) &&
			(!guard_moves_a_directory(c->nr, effect, place) || may_change_all_in(place->path, effect))) &&
	    (asks || !guard->take || guard->take(place->path, with_contents(effect, place))))
		return 0;
	if (((effect & ~LIND_DOES_EMPTY) == LIND_DOES_CREATE && place->object >= 0) ||
	    finds_its_name_taken(c, effect, place))
		return -EEXIST;
	if (arg && puts_the_same(c, effect, place, arg))
		return -EEXIST;
	/* Asking changes nothing, and is no reason to tell anybody; nor is what would fail in any case,
	 * as git tries it. */
	if (!asks && !finds_something_in_it(c, place))
		said = lind_ask(c->target, c->nr, guard->refusal,
		    guard->why ? guard->why(place->path, with_contents(effect, place)) : "may not be changed",
		    place->path, place->path);
	if (said == LIND_ALLOWED || said == LIND_INTERRUPTED)
		return said == LIND_ALLOWED ? 0 : -EINTR;
	/* The new name comes first: there it may be. */
	return effect & LIND_DOES_LINK ? -EXDEV : -guard->refusal;
}

/* The kernel itself refuses what a descriptor does not allow. */
static int decide_fd(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg)
{
	int64_t flags = own(SYS_fcntl, (uint64_t)place->object, F_GETFL, 0, 0);

	if (flags >= 0 && (flags & O_PATH || (effect == LIND_DOES_WRITE && !(flags & O_ACCMODE))))
		return 0;
	if (guard->keeps_given && was_given(effect, place))
		return 0;
	return decide(c, effect, place, arg);
}

/* Without a switch, which might be looked up in memory: this is part of a filter. */
bool lind_guard_changes_nothing(uint32_t nr, uint64_t a1, uint64_t a2)
{
	uint32_t flags = (uint32_t)(nr == SYS_openat || nr == SYS_faccessat || nr == SYS_faccessat2 ? a2 : a1);

	if (nr == SYS_open || nr == SYS_openat)
		return flags & O_PATH || !(flags & (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)));
	return (nr == SYS_access || nr == SYS_faccessat || nr == SYS_faccessat2) && !(flags & W_OK);
}

/* The old name alone, which it is asked about as any other. */
static int64_t remove_old(const struct lind_call *c)
{
	bool at = c->nr != SYS_rename;
	struct lind_call gone = *c;

	gone.nr = at ? SYS_unlinkat : SYS_unlink;
	gone.args[2] = number(0);
	return lind_path_call(&gone, NULL, decide, NULL);
}

static int64_t rename_to(const struct lind_call *c)
{
	struct lind_place from;
	struct same same = { .from = &from };
	char text[PATH_MAX];
	bool at = c->nr != SYS_rename;
	int64_t r;

	if (lind_read_string(c->args[at ? 1 : 0], text, sizeof text) < 0 ||
	    lind_path_walk(NULL, c->target,
		at ? c->args[0] : (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, c->target }, text, 0, &from))
		return lind_path_call(c, NULL, decide, NULL);
	r = lind_path_call(c, NULL, decide, &same);
	lind_place_done(&from);
	return same.found ? remove_old(c) : r;
}

int64_t lind_guard_path(const struct lind_call *c)
{
	if (is_plain_rename(c))
		return rename_to(c);
	if (!guard->may_read && lind_guard_changes_nothing(c->nr, c->args[1].value, c->args[2].value))
		return lind_pass(c);
	return lind_path_call(c, NULL, decide, NULL);
}

int64_t lind_guard_exec(const struct lind_call *c)
{
	return lind_path_exec(c, NULL, decide, NULL);
}

int64_t lind_guard_fd(const struct lind_call *c)
{
	return lind_path_fd_call(c, NULL, decide_fd, NULL);
}

int64_t lind_guard_bind(const struct lind_call *c)
{
	return lind_path_bind(c, NULL, decide, NULL);
}

/*
 * Whether a descriptor of the grate's could be used to change what may not be changed. A file
 * without a name may be anything: what the grate was started with the user gave, but not what a
 * message brought.
 */
static bool is_harmful(int fd, bool received)
{
	struct lind_place place = { .dir = -1, .object = fd };
	int64_t flags = own(SYS_fcntl, (uint64_t)fd, F_GETFL, 0, 0);

	if (flags < 0 || flags & O_PATH || !(flags & O_ACCMODE) ||
	    own(SYS_fstat, (uint64_t)fd, (uintptr_t)&place.st, 0, 0))
		return false;
	if (!S_ISREG(place.st.st_mode) || has_no_name(&place.st))
		return false;
	if (own(SYS_fcntl, (uint64_t)fd, F_GET_SEALS, 0, 0) >= 0)
		return false;
	if (lind_kernel_name(fd, place.path))
		return received || strcmp(place.path, "(unreachable)");
	return !may_change(place.path, with_contents(LIND_DOES_WRITE, &place));
}

bool guard_may_have(int fd)
{
	return !is_harmful(fd, true) && guard_may_read_fd(guard, fd);
}

/* Opens `fd` again for reading. -1 if that cannot be. */
static int read_only(int fd)
{
	char name[40];

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	return (int)own(SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)name, O_RDONLY | O_CLOEXEC, 0);
}

/* A descriptor that the grate was started with. */
static void vet(int fd)
{
	int again;

	if (!guard_may_read_fd(guard, fd)) {
		lind_log("descriptor %d is of a file that may not be read: it is closed", fd);
		own_close(fd);
		return;
	}
	if (!is_harmful(fd, false))
		return;
	lind_log("descriptor %d writes to a file that may not be changed: it can only read from now on", fd);
	if ((again = read_only(fd)) < 0 || own(SYS_dup3, (uint64_t)again, (uint64_t)fd, 0, 0) < 0)
		own_close(fd);
	own_close(again);
}

static void remember(int fd)
{
	if (fd > 2 && given_count < GIVEN)
		given[given_count++] = fd;
}

void lind_guard_begin(const struct lind_guard *the_guard)
{
	guard = the_guard;
	lind_each_own_fd(DESCRIPTORS, guard->keeps_given ? remember : vet);
}

static bool handles(const struct lind_handler *on, size_t count, uint32_t nr)
{
	for (size_t i = 0; i < count; i++)
		if (on[i].handle && (on[i].nr == nr || on[i].nr == LIND_NR_ANY))
			return true;
	return false;
}

static bool lists_calls(const struct lind_handler *on, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (on[i].handle == lind_guard_path)
			return true;
	return false;
}

/* A call without a handler would pass by the policy. Rust links a guard into each grate, so a grate
 * may have this code without a guard. */
void lind_check_guard_(const struct lind_handler *on, size_t count)
{
	if (!guard && lists_calls(on, count))
		lind_die(
		    "the calls of a guard are listed, but there is none: call lind_guard_begin before lind_grate_main");
	if (!guard)
		return;
	if (guard->may_read && !handles(on, count, SYS_execve))
		lind_die(
		    "the guard has may_read, but not its calls: write LIND_READ_GUARD_CALLS in the grate's source");
	if (guard->may_change && !handles(on, count, SYS_unlink))
		lind_die("the guard has may_change, but not its calls: write LIND_GUARD_CALLS in the grate's source");
}
