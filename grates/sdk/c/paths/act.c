/* Making calls that take paths on the places that these led to: by a directory and a name in it,
 * or by the object itself. */
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "act.h"

static int64_t make(const struct served *s, uint32_t nr, struct lind_arg a0, struct lind_arg a1, struct lind_arg a2,
    struct lind_arg a3, struct lind_arg a4)
{
	return lind_call(nr, s->c->target, a0, a1, a2, a3, a4, client(s, 0));
}

/* The two arguments that mean a place: by its name where it has one, so that grates below see a
 * path as any other. */
#define DIR(p)  number((uint64_t)((p)->dir >= 0 ? (p)->dir : (p)->object))
#define NAME(p) lind_mine((p)->dir >= 0 ? (p)->name : "")
/* The flags with it, and those of the client's that stay. */
#define FLAGS(p, flags) number(((p)->dir >= 0 ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH) | (flags))

/* A path of our own that leads to the object, for calls that know no other way. */
static const char *by_descriptor(const struct lind_place *p, char text[40])
{
	snprintf(text, 40, "/proc/self/fd/%d", p->object);
	return text;
}

int64_t lind_give_fd(uint64_t target, int fd, bool cloexec)
{
	struct lind_arg none = { 0, target };
	int64_t r = lind_call(SYS_fcntl, target, number((uint64_t)fd), number(cloexec ? F_DUPFD_CLOEXEC : F_DUPFD),
	    none, none, none, none);

	own_close(fd);
	return r;
}

/* Opening it again by our descriptor, with the client's rights. O_NOATIME is the owner's, so the
 * client sets it itself. */
static int64_t open_again(const struct served *s, uint32_t flags)
{
	const struct lind_place *p = &s->place[0];
	uint32_t access = flags & O_ACCMODE, left_out = (uint32_t)(O_CREAT | O_NOFOLLOW | O_NOATIME);
	int mode = (access != O_WRONLY ? R_OK : 0) | (access || flags & O_TRUNC ? W_OK : 0);
	struct lind_arg none = client(s, 0);
	char text[40];
	int64_t fd, r;

	if (flags & (O_TMPFILE & ~O_DIRECTORY))
		mode = W_OK | X_OK;
	if (!(flags & O_PATH) && (r = lind_client_may(s->c->target, p->object, mode)))
		return r;
	fd = own(SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)by_descriptor(p, text),
	    (flags & ~left_out) | O_CLOEXEC, 0);
	if (fd < 0 || flags & O_PATH || !(flags & O_NOATIME))
		return fd;
	r = lind_call(SYS_fcntl, s->c->target, number((uint64_t)fd), number(F_SETFL),
	    number(flags & ~(uint32_t)(O_ACCMODE | O_CREAT | O_NOFOLLOW)), none, none, none);
	if (r < 0)
		own_close((int)fd);
	return r < 0 ? r : fd;
}

static int64_t act_open(const struct served *s)
{
	const struct lind_place *p = &s->place[0];
	uint32_t flags = open_flags(s->c);
	struct lind_arg mode = s->c->nr == SYS_openat ? s->c->args[3] : s->c->args[s->c->nr == SYS_creat ? 1 : 2];
	int64_t fd;

	if (p->dir >= 0) {
		/* A name that slashes follow is a directory that does not exist, or it would not be a name any
		 * more. */
		if (p->slash && p->object < 0)
			return flags & O_CREAT ? -EISDIR : -ENOENT;
		return make(s, SYS_openat, DIR(p), NAME(p), number(flags | O_NOFOLLOW), mode, client(s, 0));
	}
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	/* The kernel opens its devices by their names only. */
	if (p->bound && S_ISCHR(p->st.st_mode))
		fd = own(SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)lind_view_at(s->view, p->path)->what,
		    (flags & ~(uint32_t)(O_CREAT | O_NOFOLLOW | O_TRUNC)) | O_CLOEXEC, 0);
	else
		fd = open_again(s, flags);
	return fd < 0 ? fd : lind_give_fd(s->c->target, (int)fd, flags & O_CLOEXEC);
}

/* The times of utime, utimes and futimesat as utimensat has them. */
static int64_t act_old_times(const struct served *s, struct lind_arg times)
{
	const struct lind_place *p = &s->place[0];
	struct {
		int64_t sec, fraction;
	} t[2];
	int64_t seconds[2];
	int r;

	if (!times.value)
		return make(s, SYS_utimensat, DIR(p), NAME(p), client(s, 0), FLAGS(p, 0), client(s, 0));
	if (s->c->nr == SYS_utime) {
		if ((r = lind_read(times, seconds, sizeof seconds)))
			return r;
		t[0].sec = seconds[0];
		t[1].sec = seconds[1];
		t[0].fraction = t[1].fraction = 0;
	} else {
		if ((r = lind_read(times, t, sizeof t)))
			return r;
		for (int i = 0; i < 2; i++) {
			if (t[i].fraction < 0 || t[i].fraction >= 1000000)
				return -EINVAL;
			t[i].fraction *= 1000;
		}
	}
	return make(s, SYS_utimensat, DIR(p), NAME(p), lind_mine(t), FLAGS(p, 0), client(s, 0));
}

/* Calls that have no form with a directory: on the object, by the grate's own name for it.
 * Arguments behind the path are the client's. */
static int64_t act_by_descriptor(const struct served *s)
{
	const struct lind_arg *a = s->c->args;
	uint32_t nr = s->c->nr;
	bool write = nr == SYS_setxattr || nr == SYS_lsetxattr || nr == SYS_removexattr || nr == SYS_lremovexattr;
	struct lind_arg named = a[1];
	char text[40], name[256];
	int64_t r;

	if (nr != SYS_listxattr && nr != SYS_llistxattr) {
		if ((r = lind_read_string(a[1], name, sizeof name)) < 0)
			return r == -ENAMETOOLONG ? -ERANGE : r;
		if ((r = lind_client_may_attribute(s->c->target, &s->place[0], name, write)))
			return r;
		named = lind_mine(name);
	}
	/* The object is the link itself where the end was not followed; our name for it is followed to
	 * there. */
	switch (nr) {
	case SYS_lgetxattr:
		nr = SYS_getxattr;
		break;
	case SYS_llistxattr:
		nr = SYS_listxattr;
		break;
	case SYS_lsetxattr:
		nr = SYS_setxattr;
		break;
	case SYS_lremovexattr:
		nr = SYS_removexattr;
		break;
	}
	return lind_call(nr, lind_self_, lind_mine(by_descriptor(&s->place[0], text)), named, a[2], a[3], a[4], a[5]);
}

/* truncate: as the kernel does it, so that the client's rights and limits count. */
static int64_t act_truncate(const struct served *s)
{
	struct lind_arg none = client(s, 0);
	char text[40];
	int64_t r, fd;

	if ((int64_t)s->c->args[1].value < 0)
		return -EINVAL;
	if (!S_ISREG(s->place[0].st.st_mode))
		return S_ISDIR(s->place[0].st.st_mode) ? -EISDIR : -EINVAL;
	if ((r = lind_client_may(s->c->target, s->place[0].object, W_OK)))
		return r;
	fd = own(SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)by_descriptor(&s->place[0], text),
	    O_WRONLY | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	r = make(s, SYS_ftruncate, number((uint64_t)fd), s->c->args[1], none, none, none);
	own_close((int)fd);
	return r;
}

/* inotify_add_watch: the watched file is found, and then watched by the grate's name for it. */
static int64_t act_watch(const struct served *s)
{
	const struct lind_place *p = &s->place[0];
	uint32_t mask = lind_arg32(s->c, 2);
	char text[40];
	int64_t r;

	if (mask & IN_ONLYDIR && !S_ISDIR(p->st.st_mode))
		return -ENOTDIR;
	if ((r = lind_client_may(s->c->target, p->object, R_OK)))
		return r;
	return lind_call(s->c->nr, lind_self_, s->c->args[0], lind_mine(by_descriptor(p, text)),
	    number(mask & ~(IN_ONLYDIR | IN_DONT_FOLLOW)), number(0), number(0), number(0));
}

/* A link in /proc tells the kernel's path, where the client's is wanted. */
static int64_t act_readlink(const struct served *s, struct lind_arg to, uint64_t size)
{
	const struct lind_place *p = &s->place[0];
	bool empty = !s->text[0][0];
	struct lind_arg dir = empty ? number((uint64_t)p->object) : DIR(p), name = empty ? lind_mine("") : NAME(p),
			none = client(s, 0);
	struct {
		uint64_t type, more[32];
	} fs;
	char text[PATH_MAX], seen[PATH_MAX];
	int64_t length, r;

	if (!s->view || own(SYS_fstatfs, (uint64_t)p->object, (uintptr_t)&fs, 0, 0) || fs.type != PROC_SUPER_MAGIC)
		return make(s, SYS_readlinkat, dir, name, to, number(size), none);
	if ((int32_t)size <= 0)
		return -EINVAL;
	if ((length = make(s, SYS_readlinkat, dir, name, lind_mine(text), number(PATH_MAX - 1), none)) < 0)
		return length;
	text[length] = 0;
	if (*text == '/' && strncmp(text, "/memfd:", 7)) {
		(void)lind_view_text(s->view, text, seen);
		length = (int64_t)strlen(seen);
	} else
		memcpy(seen, text, (size_t)length);
	length = length < (int32_t)size ? length : (int32_t)size;
	r = lind_write(to, seen, (size_t)length);
	return r < 0 ? r : length;
}

/* rename and link: two places. */
static int64_t act_on_two(const struct served *s)
{
	const struct lind_place *from = &s->place[0], *to = &s->place[1];
	struct lind_arg none = client(s, 0);

	if (to->slash && !(S_ISDIR(from->st.st_mode) && from->object >= 0) && to->object < 0)
		return from->object < 0 ? -ENOENT : s->use->path[0].effect & LIND_DOES_LINK ? -ENOENT : -ENOTDIR;
	if (s->use->path[0].effect & LIND_DOES_LINK)
		return make(s, SYS_linkat, DIR(from), NAME(from), DIR(to), NAME(to),
		    number(from->dir >= 0 ? 0 : AT_EMPTY_PATH));
	return make(s, SYS_renameat2, DIR(from), NAME(from), DIR(to), NAME(to),
	    s->c->nr == SYS_renameat2 ? s->c->args[4] : none);
}

/* Calls that make a name: nothing but a directory may be made with slashes behind it. */
static int64_t act_make(const struct served *s)
{
	const struct lind_arg *a = s->c->args;
	int last = s->use->paths - 1;
	const struct lind_place *p = &s->place[last];
	struct lind_arg none = client(s, 0);
	int at = s->use->path[last].path;

	switch (s->c->nr) {
	case SYS_mkdir:
	case SYS_mkdirat:
		return make(s, SYS_mkdirat, DIR(p), NAME(p), a[at + 1], none, none);
	}
	if (p->slash && p->object < 0)
		return -ENOENT;
	switch (s->c->nr) {
	case SYS_mknod:
	case SYS_mknodat:
		return make(s, SYS_mknodat, DIR(p), NAME(p), a[at + 1], a[at + 2], none);
	default:
		return make(s, SYS_symlinkat, lind_mine(s->text[0]), DIR(p), NAME(p), none, none);
	}
}

int64_t lind_path_act(const struct served *s)
{
	const struct lind_arg *a = s->c->args;
	const struct lind_place *p = &s->place[0];
	struct lind_arg none = client(s, 0);
	/* The argument after the path. */
	const struct lind_arg *b = a + s->use->path[0].path + 1;

	switch (s->c->nr) {
	case SYS_open:
	case SYS_openat:
	case SYS_creat:
		return act_open(s);
	case SYS_stat:
	case SYS_lstat:
		return make(s, SYS_newfstatat, DIR(p), NAME(p), b[0], FLAGS(p, 0), none);
	case SYS_newfstatat:
		return make(
		    s, SYS_newfstatat, DIR(p), NAME(p), b[0], FLAGS(p, lind_arg32(s->c, 3) & ~AT_EMPTY_PATH), none);
	case SYS_statx:
		return make(s, SYS_statx, DIR(p), NAME(p), FLAGS(p, lind_arg32(s->c, 2) & ~AT_EMPTY_PATH), b[1], b[2]);
	case SYS_access:
	case SYS_faccessat:
		return make(s, SYS_faccessat2, DIR(p), NAME(p), b[0], FLAGS(p, 0), none);
	case SYS_faccessat2:
		return make(
		    s, SYS_faccessat2, DIR(p), NAME(p), b[0], FLAGS(p, lind_arg32(s->c, 3) & ~AT_EMPTY_PATH), none);
	case SYS_statfs:
		return make(s, SYS_fstatfs, number((uint64_t)p->object), b[0], none, none, none);
	case SYS_readlink:
	case SYS_readlinkat:
		return act_readlink(s, b[0], b[1].value);
	case SYS_chdir:
		return make(s, SYS_fchdir, number((uint64_t)p->object), none, none, none, none);
	case SYS_chroot:
		/* Below a root of the view no paths of the kernel's are known. */
		return s->view ? -EPERM
			       : make(s, SYS_chroot, lind_mine(""), number((uint64_t)p->object), none, none, none);
	case SYS_truncate:
		return act_truncate(s);
	case SYS_getxattr:
	case SYS_lgetxattr:
	case SYS_listxattr:
	case SYS_llistxattr:
	case SYS_setxattr:
	case SYS_lsetxattr:
	case SYS_removexattr:
	case SYS_lremovexattr:
		return act_by_descriptor(s);
	case SYS_inotify_add_watch:
		return act_watch(s);
	case SYS_chmod:
	case SYS_fchmodat:
		return make(s, SYS_fchmodat2, DIR(p), NAME(p), b[0], FLAGS(p, 0), none);
	case SYS_fchmodat2:
		return make(
		    s, SYS_fchmodat2, DIR(p), NAME(p), b[0], FLAGS(p, lind_arg32(s->c, 3) & ~AT_EMPTY_PATH), none);
	case SYS_chown:
	case SYS_lchown:
		return make(s, SYS_fchownat, DIR(p), NAME(p), b[0], b[1], FLAGS(p, 0));
	case SYS_fchownat:
		return make(
		    s, SYS_fchownat, DIR(p), NAME(p), b[0], b[1], FLAGS(p, lind_arg32(s->c, 4) & ~AT_EMPTY_PATH));
	case SYS_utime:
	case SYS_utimes:
	case SYS_futimesat:
		return act_old_times(s, b[0]);
	case SYS_utimensat:
		return make(
		    s, SYS_utimensat, DIR(p), NAME(p), b[0], FLAGS(p, lind_arg32(s->c, 3) & ~AT_EMPTY_PATH), none);
	case SYS_unlink:
	case SYS_unlinkat:
	case SYS_rmdir:
		return make(s, SYS_unlinkat, DIR(p), NAME(p),
		    s->c->nr == SYS_rmdir        ? number(AT_REMOVEDIR)
			: s->c->nr == SYS_unlink ? number(0)
						 : a[2],
		    none, none);
	case SYS_mkdir:
	case SYS_mkdirat:
	case SYS_mknod:
	case SYS_mknodat:
	case SYS_symlink:
	case SYS_symlinkat:
		return act_make(s);
	case SYS_link:
	case SYS_linkat:
	case SYS_rename:
	case SYS_renameat:
	case SYS_renameat2:
		return act_on_two(s);
	default:
		return -ENOSYS;
	}
}
