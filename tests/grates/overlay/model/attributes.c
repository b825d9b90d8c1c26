/* Operations on what a file is said to be: modes, owners, times, extended attributes. */
#include <sys/syscall.h>
#include <sys/xattr.h>
#include "operations.h"

static void op_stat(void)
{
	char path[PATH_ROOM], text[40];
	int start, dir = any_start(&start), flags = any(2) ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat st;
	int64_t r;

	any_path(path);
	if (!any(4))
		flags |= AT_EMPTY_PATH, *path = 0;
	r = sys(fstatat(dir, path, &st, flags));
	did(r, "fstatat(%d, \"%s\", %d)", start, path, flags);
	if (!r)
		also("%o %u:%u links %u size %lld %s", st.st_mode, st.st_uid, st.st_gid, (unsigned)st.st_nlink,
		    S_ISDIR(st.st_mode) ? 0 : (long long)st.st_size,
		    time_text(st.st_mtim.tv_sec, st.st_mtim.tv_nsec, text));
}

static void op_access(void)
{
	char path[PATH_ROOM];
	int start, dir = any_start(&start), mode = (int)any(8);

	any_path(path);
	did(sys(faccessat(dir, path, mode, 0)), "faccessat(%d, \"%s\", %d)", start, path, mode);
}

static void op_mode(void)
{
	char path[PATH_ROOM];
	int start, dir = any_start(&start);
	mode_t mode = any(07777 + 1) & 06777;

	any_path(path);
	/* The library function of musl changes the mode of O_PATH descriptors by another way. */
	if (dir != AT_FDCWD && any(2))
		did(sys(syscall(SYS_fchmod, dir, mode)), "fchmod(%d, %#o)", start, mode);
	else
		did(sys(fchmodat(dir, path, mode, 0)), "fchmodat(%d, \"%s\", %#o)", start, path, mode);
	changed();
}

static void op_owner(void)
{
	char path[PATH_ROOM];
	int start, dir = any_start(&start), flags = any(2) ? AT_SYMLINK_NOFOLLOW : 0;
	uid_t uid = any(3) ? UINT32_MAX : any(2) * USER, gid = any(2) ? UINT32_MAX : any(2) * USER;

	any_path(path);
	did(sys(fchownat(dir, path, uid, gid, flags)), "fchownat(%d, \"%s\", %d, %d, %d)", start, path, (int)uid,
	    (int)gid, flags);
	changed();
}

static void op_times(void)
{
	char path[PATH_ROOM];
	int start, dir = any_start(&start), flags = any(2) ? AT_SYMLINK_NOFOLLOW : 0;
	struct timespec t[2] = { { any(PAST), any(1000000000) }, { any(PAST), any(1000000000) } };
	bool now = !any(4);
	int64_t r;

	if (!any(6))
		t[any(2)].tv_nsec = any(2) ? UTIME_OMIT : UTIME_NOW;
	any_path(path);
	r = sys(utimensat(dir, path, now ? NULL : t, flags));
	did(r, "utimensat(%d, \"%s\", %lld.%09ld, %d)", start, path, now ? 0 : (long long)t[1].tv_sec,
	    now ? 0 : (long)t[1].tv_nsec, flags);
	changed();
}

static void op_umask(void)
{
	mode_t mask = any(3) ? 022 : any(0777 + 1) & 0077;

	did(umask(mask), "umask(%#o)", mask);
}

/* Of a path, followed or not, or of an open file. Names other than those of users are not the same
 * on all file systems. */
static void op_xattr(void)
{
	static const char *const names[] = { "user.a", "user.b", "user.c", "user.longer" };
	char path[PATH_ROOM], value[200];
	const char *name = names[any(4)];
	uint32_t slot = any(SLOTS * 2), size = any(any(4) ? 20 : 200), room = any(3) ? sizeof value : any(10);
	bool opened = slot < SLOTS && slots[slot] >= 0, follow = any(2);
	int fd = opened ? slots[slot] : -1, flags = any(3) ? 0 : (int)any(3);
	int64_t r;

	any_path(path);
	memset(value, 'a' + (int)any(26), sizeof value);
	switch (any(5)) {
	case 0:
	case 1:
		r = sys(opened ? fsetxattr(fd, name, value, size, flags)
			       : (follow ? setxattr : lsetxattr)(path, name, value, size, flags));
		did(r, "setxattr(\"%s\", %u, %d, \"%s\", %u, %d)", path, opened ? slot : 99, follow, name, size, flags);
		changed();
		break;
	case 2:
	case 3:
		r = sys(opened ? fgetxattr(fd, name, value, room)
			       : (follow ? getxattr : lgetxattr)(path, name, value, room));
		did(r, "getxattr(\"%s\", %u, %d, \"%s\", %u)", path, opened ? slot : 99, follow, name, room);
		if (r > 0 && room)
			also("%016llx", (unsigned long long)hash_bytes(0, value, (size_t)r));
		break;
	default:
		r = sys(opened ? fremovexattr(fd, name) : (follow ? removexattr : lremovexattr)(path, name));
		did(r, "removexattr(\"%s\", %u, %d, \"%s\")", path, opened ? slot : 99, follow, name);
		changed();
	}
}

void operation_on_attributes(void)
{
	switch (any(10)) {
	case 0:
	case 1:
	case 2:
		op_stat();
		break;
	case 3:
		op_access();
		break;
	case 4:
	case 5:
		op_mode();
		break;
	case 6:
		op_owner();
		break;
	case 7:
		op_times();
		break;
	case 8:
		op_umask();
		break;
	default:
		op_xattr();
	}
}
