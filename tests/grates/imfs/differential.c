/*
 * The imfs core against Linux: random operations on both, in a directory of tmpfs that is our root
 * and in a filesystem of imfs, by root and by an ordinary user. Results, errnos and, now and then,
 * whole trees must be equal. Needs root (chroot). In one file, long as it is: each operation is a
 * few lines, which all use the same state.
 *
 *	differential [-v] [SEED [OPERATIONS]]
 */
#include <dirent.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "imfs_core.h"

#define FDS  6
#define USER 1000

static struct imfs fs;
static struct imfs_process *me;
static struct imfs_file *ours[FDS];
static int theirs[FDS];
static uint64_t seed;
static long op_number;
static bool verbose, failed;
static char what[8400];

static uint32_t any(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % n;
}

__attribute__((format(printf, 1, 2))) static void doing(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
}

static void check(int64_t linux_says, int64_t imfs_says)
{
	if (verbose)
		printf("%ld uid %u %s = %lld\n", op_number, me->cred.uid, what, (long long)linux_says);
	/* Linux looks at the length of a last name later than at most else, and refuses a symbolic link in
	 * a sticky directory with another errno. */
	if (linux_says == imfs_says || (linux_says < 0 && imfs_says == -ENAMETOOLONG) ||
	    (linux_says == -EACCES && imfs_says == -ELOOP))
		return;
	printf("operation %ld, uid %u: %s: Linux %lld%s%s, imfs %lld\n", op_number, me->cred.uid, what,
	    (long long)linux_says, linux_says < 0 ? " " : "", linux_says < 0 ? strerror((int)-linux_says) : "",
	    (long long)imfs_says);
	failed = true;
}

static int64_t sys(int64_t r)
{
	return r < 0 ? -errno : r;
}

static void any_path(char *to)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", ".", "..", "l" };
	int parts = 1 + (int)any(3) * (int)any(2);

	*to = 0;
	if (!any(6))
		strcat(to, "/");
	for (int i = 0; i < parts; i++) {
		strcat(to, names[any(any(3) ? 5 : 8)]);
		if (i + 1 < parts)
			strcat(to, any(20) ? "/" : "//");
	}
	if (!any(12))
		strcat(to, "/");
	if (!any(400))
		strcpy(to, any(2) ? "/" : "");
	if (!any(400)) {
		memset(to, 'n', 256);
		to[255 + any(2)] = 0;
	}
}

/* A directory to start from: the working directory or an open file. */
static int any_dir(struct imfs_node **start, int *r)
{
	unsigned i = any(FDS * 4);

	*r = 0;
	*start = me->cwd;
	if (i >= FDS || !ours[i])
		return AT_FDCWD;
	*start = ours[i]->node;
	return theirs[i];
}

static int walk(struct imfs_node *start, const char *path, enum imfs_follow follow, struct imfs_at *at)
{
	return imfs_walk(&fs, me, start, NULL, path, follow, at);
}

static void op_open(void)
{
	static const uint32_t modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR };
	static const uint32_t extra[] = { O_CREAT, O_CREAT, O_EXCL | O_CREAT, O_TRUNC, O_APPEND, O_DIRECTORY,
		O_NOFOLLOW, O_PATH };
	char path[300];
	struct imfs_at at;
	struct imfs_node *start;
	struct imfs_file *f = NULL;
	uint32_t flags = modes[any(4)], mode = any(2) ? 0644 : any(07777 + 1), i = any(FDS);
	int r, fd, dir = any_dir(&start, &r);

	for (unsigned n = any(4); n; n--)
		flags |= extra[any(8)];
	if (!any(40))
		flags = O_TMPFILE | O_RDWR;
	/* Of fifos only what does not wait. */
	flags |= O_NONBLOCK;
	any_path(path);
	doing("openat(%d, \"%s\", %#o, %#o)", dir, path, flags, mode);
	fd = (int)sys(openat(dir, path, (int)flags, mode));
	r = imfs_open_flags(flags);
	r = r ? r : walk(start, path, imfs_open_follow(flags), &at);
	r = r ? r : imfs_open(&fs, me, &at, flags, mode, &f);
	check(fd < 0 ? fd : 0, r);
	if (ours[i]) {
		imfs_file_drop(&fs, ours[i]);
		close(theirs[i]);
	}
	ours[i] = r ? NULL : f;
	theirs[i] = fd;
}

/* Of a fifo as many pages as are asked for, which is how Linux keeps them. */
static int64_t fifo_io(struct imfs_file *f, char *bytes, uint32_t length, bool put)
{
	struct imfs_fifo *fifo = f->node->fifo;
	uint32_t moved = 0;
	int64_t r = put ? imfs_may_write(f) : imfs_may_read(f);

	while (!r && moved < length) {
		const uint8_t *from;
		uint8_t *to;

		r = put ? imfs_fifo_room(fifo, length - moved, &to) : imfs_fifo_data(fifo, &from);
		if (r <= 0)
			break;
		r = r < length - moved ? r : length - moved;
		memcpy(put ? to : (uint8_t *)bytes + moved, put ? (uint8_t *)bytes + moved : from, (size_t)r);
		put ? imfs_fifo_put(fifo, (uint32_t)r) : imfs_fifo_took(fifo, (uint32_t)r);
		moved += (uint32_t)r;
		r = 0;
	}
	return moved ? moved : r;
}

static void op_fifo(uint32_t i)
{
	static char a[20 * 4096], b[20 * 4096];
	uint32_t length = 4096 * any(20);
	bool put = any(2);

	memset(a, 'A' + (int)any(26), length);
	memcpy(b, a, length);
	doing("%s(%u, %u) of a fifo", put ? "write" : "read", i, length);
	check(sys(put ? write(theirs[i], a, length) : read(theirs[i], a, length)), fifo_io(ours[i], b, length, put));
	if (memcmp(a, b, length))
		check(0, 1);
}

static void op_rw(void)
{
	static char a[200000], b[200000];
	uint32_t i = any(FDS), length = any(any(4) ? 300 : 150000);
	int64_t off = any(any(3) ? 500 : 300000);

	if (!ours[i])
		return;
	if (imfs_is_fifo(ours[i]) && any(4)) {
		op_fifo(i);
		return;
	}
	switch (any(6)) {
	case 0:
	case 1:
		memset(a, 'A' + (int)any(26), length);
		doing("pwrite(%u, %u, %lld)", i, length, (long long)off);
		check(sys(pwrite(theirs[i], a, length, off)), imfs_pwrite(&fs, me, ours[i], a, length, off));
		break;
	case 2: {
		memset(a, 1, sizeof a);
		memset(b, 1, sizeof b);
		doing("pread(%u, %u, %lld)", i, length, (long long)off);
		check(sys(pread(theirs[i], a, length, off)), imfs_pread(&fs, ours[i], b, length, off));
		if (memcmp(a, b, sizeof a))
			check(0, 1);
		break;
	}
	case 3: {
		int64_t size = any(any(3) ? 1000 : 400000);

		doing("ftruncate(%u, %lld)", i, (long long)size);
		check(sys(ftruncate(theirs[i], size)),
		    ours[i]->flags & O_PATH ? -EBADF
			: S_ISDIR(ours[i]->node->mode) || imfs_may_write(ours[i])
			? -EINVAL
			: imfs_truncate(&fs, ours[i]->node, me, size));
		break;
	}
	case 4: {
		int whence = (int)any(4);
		int64_t by = (int64_t)any(2000) - 500;

		if (S_ISDIR(ours[i]->node->mode) || whence == SEEK_DATA)
			return;
		doing("lseek(%u, %lld, %d)", i, (long long)by, whence);
		check(sys(lseek(theirs[i], by, whence)), imfs_lseek(ours[i], by, whence));
		break;
	}
	default: {
		static const int modes[] = { 0, 1, 3, 2, 16 };
		int mode = modes[any(5)];
		int64_t len = any(100000);

		doing("fallocate(%u, %d, %lld, %lld)", i, mode, (long long)off, (long long)len);
		check(sys(fallocate(theirs[i], mode, off, len)),
		    ours[i]->flags & O_PATH ? -EBADF : imfs_fallocate(&fs, ours[i], me, mode, off, len));
	}
	}
}

static void op_names(void)
{
	char path[300], other[300];
	struct imfs_at at, to;
	struct imfs_node *start, *start2;
	uint32_t mode = any(2) ? 0755 : any(07777 + 1);
	int r, dir = any_dir(&start, &r), dir2 = any_dir(&start2, &r);

	any_path(path);
	any_path(other);
	switch (any(9)) {
	case 8:
		doing("mknodat(%d, \"%s\", %#o, S_IFIFO)", dir, path, mode);
		r = walk(start, path, IMFS_NAME_ITSELF, &at);
		check(sys(mknodat(dir, path, S_IFIFO | mode, 0)), r ? r : imfs_mknod(&fs, me, &at, S_IFIFO | mode, 0));
		break;
	case 0:
	case 1:
		doing("mkdirat(%d, \"%s\", %#o)", dir, path, mode);
		r = walk(start, path, IMFS_NAME_ITSELF, &at);
		check(sys(mkdirat(dir, path, mode)), r ? r : imfs_mkdir(&fs, me, &at, mode));
		break;
	case 2:
		doing("unlinkat(%d, \"%s\")", dir, path);
		r = walk(start, path, IMFS_NAME_ITSELF, &at);
		check(sys(unlinkat(dir, path, 0)), r ? r : imfs_unlink(&fs, me, &at));
		break;
	case 3:
		doing("rmdir(%d, \"%s\")", dir, path);
		r = walk(start, path, IMFS_NAME_ITSELF, &at);
		check(sys(unlinkat(dir, path, AT_REMOVEDIR)), r ? r : imfs_rmdir(&fs, me, &at));
		break;
	case 4:
	case 5: {
		unsigned flags = any(3) ? 0 : any(4);

		doing("renameat2(%d, \"%s\", %d, \"%s\", %u)", dir, path, dir2, other, flags);
		/* Linux looks at the flags first. */
		r = flags == 3 ? -EINVAL : walk(start, path, IMFS_NAME_ITSELF, &at);
		r = r ? r : walk(start2, other, IMFS_NAME_ITSELF, &to);
		check(sys(syscall(SYS_renameat2, dir, path, dir2, other, flags)),
		    r ? r : imfs_rename(&fs, me, &at, &to, flags));
		break;
	}
	case 6: {
		bool follow = any(2);

		/* The host may have fs.protected_hardlinks. */
		if (me->cred.uid)
			return;

		doing("linkat(%d, \"%s\", %d, \"%s\", %d)", dir, path, dir2, other, follow);
		r = walk(start, path, follow ? IMFS_FOLLOW : IMFS_NOFOLLOW, &at);
		r = r ? r : imfs_exists(&at);
		r = r ? r : walk(start2, other, IMFS_NAME_ITSELF, &to);
		check(sys(linkat(dir, path, dir2, other, follow ? AT_SYMLINK_FOLLOW : 0)),
		    r ? r : imfs_link(&fs, me, at.node, &to));
		break;
	}
	default:
		doing("symlinkat(\"%s\", %d, \"%s\")", other, dir, path);
		r = *other ? walk(start, path, IMFS_NAME_ITSELF, &at) : -ENOENT;
		check(sys(symlinkat(other, dir, path)), r ? r : imfs_symlink(&fs, me, &at, other));
	}
}

static void same_stat(const struct stat *l, const struct imfs_node *n)
{
	struct imfs_stat s;
	bool dir = S_ISDIR(l->st_mode);

	imfs_stat(n, &s);
	if (l->st_mode != s.mode || l->st_nlink != s.nlink || l->st_uid != s.uid || l->st_gid != s.gid ||
	    (!dir && (uint64_t)l->st_size != s.size)) {
		printf(
		    "%s: Linux mode %o nlink %d uid %u gid %u size %lld; imfs mode %o nlink %u uid %u gid %u size %llu\n",
		    what, l->st_mode, (int)l->st_nlink, l->st_uid, l->st_gid, (long long)l->st_size, s.mode, s.nlink,
		    s.uid, s.gid, (unsigned long long)s.size);
		failed = true;
	}
}

static void op_attr(void)
{
	char path[300], text[400];
	struct imfs_at at;
	struct imfs_node *start;
	struct stat st;
	bool follow = any(2);
	uint32_t mode = any(07777 + 1), uid = any(3) ? UINT32_MAX : any(2) * USER,
		 gid = any(2) ? UINT32_MAX : any(2) * USER;
	int64_t got;
	int r, dir = any_dir(&start, &r);

	any_path(path);
	r = walk(start, path, follow ? IMFS_FOLLOW : IMFS_NOFOLLOW, &at);
	r = r ? r : imfs_exists(&at);
	switch (any(8)) {
	case 0:
		doing("fstatat(%d, \"%s\", %d)", dir, path, follow);
		got = sys(fstatat(dir, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW));
		check(got, r);
		if (!got && !r)
			same_stat(&st, at.node);
		break;
	case 1:
		if (!follow)
			return;
		doing("fchmodat(%d, \"%s\", %#o)", dir, path, mode);
		check(sys(fchmodat(dir, path, mode, 0)), r ? r : imfs_chmod(at.node, &me->cred, mode));
		break;
	case 2:
		doing("fchownat(%d, \"%s\", %d, %d, %d)", dir, path, (int)uid, (int)gid, follow);
		check(sys(fchownat(dir, path, uid, gid, follow ? 0 : AT_SYMLINK_NOFOLLOW)),
		    r ? r : imfs_chown(at.node, &me->cred, uid, gid));
		break;
	case 3:
		mode &= 7;
		doing("faccessat(%d, \"%s\", %#o)", dir, path, mode);
		if (follow)
			check(sys(faccessat(dir, path, (int)mode, 0)),
			    r ? r : imfs_access(at.node, me, (int)mode, false));
		break;
	case 4: {
		struct timespec t[2] = { { any(100000), any(1000000000) }, { any(100000), any(1000000000) } };
		bool now = any(2);

		if (!any(4))
			t[any(2)].tv_nsec = any(2) ? UTIME_OMIT : UTIME_NOW;
		doing("utimensat(%d, \"%s\", %d)", dir, path, now);
		got = sys(utimensat(dir, path, now ? NULL : t, follow ? 0 : AT_SYMLINK_NOFOLLOW));
		check(got, r ? r : imfs_utimens(at.node, &me->cred, now ? NULL : t));
		if (!got && !now && !sys(fstatat(dir, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW)) &&
		    t[1].tv_nsec < 1000000000 &&
		    (st.st_mtim.tv_sec != at.node->mtime.tv_sec || st.st_mtim.tv_nsec != at.node->mtime.tv_nsec))
			check(st.st_mtim.tv_sec, at.node->mtime.tv_sec);
		break;
	}
	case 5:
		doing("truncate(\"%s\", %u)", path, mode);
		r = walk(me->cwd, path, IMFS_FOLLOW, &at);
		r = r ? r : imfs_exists(&at);
		r = r                         ? r
		    : S_ISDIR(at.node->mode)  ? -EISDIR
		    : !S_ISREG(at.node->mode) ? -EINVAL
					      : imfs_may(at.node, &me->cred, W_OK);
		check(sys(truncate(path, mode)), r ? r : imfs_truncate(&fs, at.node, me, mode));
		break;
	case 6:
		doing("readlinkat(%d, \"%s\")", dir, path);
		r = walk(start, path, IMFS_NOFOLLOW, &at);
		r = r ? r : imfs_exists(&at);
		got = sys(readlinkat(dir, path, text, sizeof text));
		check(got, r ? r : !S_ISLNK(at.node->mode) ? -EINVAL : at.node->size);
		if (got > 0 && memcmp(text, at.node->target, (size_t)got))
			check(got, -1);
		break;
	default:
		if (any(2)) {
			mode &= 0777;
			if (any(3))
				mode &= 022;
			doing("umask(%#o)", mode);
			check(umask(mode), me->umask);
			me->umask = mode;
			break;
		}
		doing("chdir(\"%s\")", path);
		r = walk(me->cwd, path, IMFS_FOLLOW, &at);
		r = r ? r : imfs_exists(&at);
		r = r ? r : !S_ISDIR(at.node->mode) ? -ENOTDIR : imfs_may(at.node, &me->cred, X_OK);
		check(sys(chdir(path)), r);
		if (!r)
			imfs_set_cwd(&fs, me, at.node, NULL);
	}
}

/* Names are told in any order. */
static void same_names(const char *a, const char *b, int64_t length)
{
	for (const char *name = a; name < a + length; name += strlen(name) + 1) {
		const char *other = b;

		while (other < b + length && strcmp(name, other))
			other += strlen(other) + 1;
		if (other >= b + length) {
			printf("operation %ld: %s: %s is missing\n", op_number, what, name);
			failed = true;
		}
	}
}

/* Of a path, followed or not, or of an open file. */
static void op_xattr(void)
{
	static const char *const names[] = { "user.a", "user.b", "user.c", "user.longer", "user.", "other.x", "" };
	char path[300], a[400], b[400];
	const char *name = names[any(any(8) ? 4 : 7)];
	uint32_t i = any(FDS * 2), size = any(any(4) ? 20 : 300), room = any(3) ? sizeof a : any(10);
	bool opened = i < FDS && ours[i], follow = any(2);
	int flags = any(3) ? 0 : (int)any(4);
	const void *value = NULL;
	struct imfs_at at;
	struct imfs_node *n;
	int64_t r, got;

	any_path(path);
	r = opened ? (ours[i]->flags & O_PATH ? -EBADF : 0)
		   : walk(me->cwd, path, follow ? IMFS_FOLLOW : IMFS_NOFOLLOW, &at);
	r = r || opened ? r : imfs_exists(&at);
	n = r ? NULL : opened ? ours[i]->node : at.node;
	memset(a, 'a' + (int)any(26), sizeof a);
	switch (any(6)) {
	case 0:
	case 1:
		doing("setxattr(\"%s\", %u, %d, \"%s\", %u, %d)", path, i, follow, name, size, flags);
		got = sys(opened ? fsetxattr(theirs[i], name, a, size, flags)
				 : (follow ? setxattr : lsetxattr)(path, name, a, size, flags));
		check(got, !*name ? -ERANGE : r ? r : imfs_setxattr(&fs, n, &me->cred, name, a, size, flags));
		break;
	case 2:
	case 3:
		doing("getxattr(\"%s\", %u, %d, \"%s\", %u)", path, i, follow, name, room);
		got = sys(opened ? fgetxattr(theirs[i], name, b, room)
				 : (follow ? getxattr : lgetxattr)(path, name, b, room));
		r = !*name ? -ERANGE : r ? r : imfs_getxattr(&fs, n, &me->cred, name, &value);
		check(got, room && r > (int64_t)room ? -ERANGE : r);
		if (room && got > 0 && memcmp(b, value, (size_t)got))
			check(got, -1);
		break;
	case 4:
		doing("listxattr(\"%s\", %u, %d, %u)", path, i, follow, room);
		got = sys(opened ? flistxattr(theirs[i], a, room) : (follow ? listxattr : llistxattr)(path, a, room));
		check(got, r ? r : imfs_listxattr(&fs, n, &me->cred, b, room));
		if (room && got > 0 && !failed)
			same_names(a, b, got);
		break;
	default:
		doing("removexattr(\"%s\", %u, %d, \"%s\")", path, i, follow, name);
		got = sys(opened ? fremovexattr(theirs[i], name) : (follow ? removexattr : lremovexattr)(path, name));
		check(got, !*name ? -ERANGE : r ? r : imfs_removexattr(&fs, n, &me->cred, name));
	}
}

static void become(uint32_t uid)
{
	if (seteuid(0) || setresgid(uid, uid, 0) || setresuid(uid, uid, 0))
		perror("setresuid"), exit(2);
	me->cred = (struct imfs_cred){ .uid = uid,
		.gid = uid,
		.ruid = uid,
		.rgid = uid,
		.caps = uid ? 0 : IMFS_ALL_CAPS,
		.rcaps = uid ? 0 : IMFS_ALL_CAPS };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of a directory of imfs, read through a small buffer. */
static int names_of(struct imfs_node *dir, char **names)
{
	struct imfs_file *f = imfs_file_new(&fs, dir, O_RDONLY);
	uint8_t buffer[400];
	int64_t got;
	int n = 0;

	while ((got = imfs_getdents(&fs, f, buffer, any(2) ? sizeof buffer : 288)) > 0 || got == -EINVAL)
		for (int64_t at = 0; at < got; at += *(uint16_t *)(buffer + at + 16))
			names[n++] = strdup((char *)buffer + at + 19);
	imfs_file_drop(&fs, f);
	qsort(names, (size_t)n, sizeof *names, by_name);
	return n;
}

static void same_contents(int fd, struct imfs_node *n)
{
	static char a[1 << 20], b[1 << 20];
	struct imfs_file *f = imfs_file_new(&fs, n, O_RDONLY);
	int64_t got = sys(pread(fd, a, sizeof a, 0));

	check(got, imfs_pread(&fs, f, b, sizeof b, 0));
	if (got > 0 && memcmp(a, b, (size_t)got))
		check(got, -1);
	imfs_file_drop(&fs, f);
}

static void same_tree(int fd, struct imfs_node *n)
{
	char *linux_names[4096], *imfs_names[4096];
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int count = 0, imfs_count = names_of(n, imfs_names);

	while ((e = readdir(d)))
		linux_names[count++] = strdup(e->d_name);
	qsort(linux_names, (size_t)count, sizeof *linux_names, by_name);
	doing("names of directory %llu", (unsigned long long)n->ino);
	check(count, imfs_count);
	for (int i = 0; i < count && !failed; i++) {
		struct imfs_entry *entry;
		struct stat st;

		check(0, strcmp(linux_names[i], imfs_names[i]));
		if (failed || !strcmp(linux_names[i], ".") || !strcmp(linux_names[i], ".."))
			continue;
		entry = imfs_dir_find(n, linux_names[i], strlen(linux_names[i]));
		doing("%s in the tree", linux_names[i]);
		check(0, sys(fstatat(fd, linux_names[i], &st, AT_SYMLINK_NOFOLLOW)));
		same_stat(&st, entry->node);
		if (S_ISDIR(st.st_mode))
			same_tree(openat(fd, linux_names[i], O_RDONLY | O_DIRECTORY), entry->node);
		else if (S_ISREG(st.st_mode)) {
			int file = openat(fd, linux_names[i], O_RDONLY);

			same_contents(file, entry->node);
			close(file);
		}
	}
	for (int i = 0; i < count; i++)
		free(linux_names[i]);
	for (int i = 0; i < imfs_count; i++)
		free(imfs_names[i]);
	closedir(d);
}

static void whole_tree(void)
{
	uint32_t uid = me->cred.uid;
	char a[PATH_MAX], b[PATH_MAX];

	doing("getcwd");
	check(sys(syscall(SYS_getcwd, a, sizeof a)),
	    (int64_t)imfs_node_path(&fs, me->cwd, b, sizeof b) + (me->cwd->dir.removed ? 0 : 1));
	become(0);
	same_tree(open("/", O_RDONLY | O_DIRECTORY), fs.root);
	become(uid);
}

/* With everything closed and removed, nothing is left: no node and no byte. */
static void nothing_left(void)
{
	static char *names[4096];
	uint64_t root;
	struct imfs_cred owner = { 0 };
	struct imfs fresh;

	become(0);
	for (int i = 0; i < FDS; i++)
		if (ours[i])
			imfs_file_drop(&fs, ours[i]);
	imfs_set_cwd(&fs, me, fs.root, NULL);
	for (bool again = true; again;) {
		struct imfs_node *dir = fs.root;
		struct imfs_at at;
		int n;

		while (dir->dir.first && S_ISDIR(dir->dir.last->node->mode) && dir->dir.last->node->dir.count)
			dir = dir->dir.last->node;
		again = dir->dir.count;
		n = names_of(dir, names);
		if (again && !walk(dir, dir->dir.last->name, IMFS_NAME_ITSELF, &at) &&
		    (S_ISDIR(at.node->mode) ? imfs_rmdir : imfs_unlink)(&fs, me, &at))
			again = false, failed = true;
		while (n--)
			free(names[n]);
	}
	imfs_xattr_free(&fs, fs.root);
	imfs_init(&fresh, "", UINT64_MAX, &owner);
	root = fresh.used;
	if (fs.nodes != 1 || fs.used != root) {
		printf("left over: %llu nodes, %llu bytes\n", (unsigned long long)fs.nodes - 1,
		    (unsigned long long)(fs.used - root));
		failed = true;
	}
}

/* tmpfs has those of users since Linux 6.6. */
static bool has_xattrs(void)
{
	return !setxattr("/", "user.probe", "", 0, 0) && !removexattr("/", "user.probe");
}

static int run(uint64_t from, long operations)
{
	struct imfs_cred owner = { 0 };
	bool xattrs = has_xattrs();

	seed = from * 0x9e3779b97f4a7c15ull + 1;
	imfs_init(&fs, "", UINT64_MAX, &owner);
	fs.root->mode = S_IFDIR | 0777;
	me = imfs_process_new();
	umask(0);
	signal(SIGPIPE, SIG_IGN);
	become(0);
	imfs_set_cwd(&fs, me, fs.root, NULL);
	for (op_number = 0; op_number < operations && !failed; op_number++) {
		switch (any(11)) {
		case 0:
		case 1:
			op_open();
			break;
		case 2:
		case 3:
			op_rw();
			break;
		case 4:
		case 5:
		case 6:
			op_names();
			break;
		case 7:
		case 8:
			op_attr();
			break;
		case 9:
			if (xattrs)
				op_xattr();
			break;
		default:
			if (!any(5))
				become(any(2) * USER);
		}
		if (op_number % 500 == 499)
			whole_tree();
	}
	whole_tree();
	nothing_left();
	return failed;
}

/* A fresh tmpfs as the root of a process of its own, so that the next seed starts clean. */
static int in_child(uint64_t from, long operations)
{
	int status;
	pid_t child = fork();

	if (!child) {
		char root[] = "/tmp/imfs-differential-XXXXXX";

		if (!mkdtemp(root) || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("imfs", root, "tmpfs", 0, "mode=777") || chroot(root) || chdir("/") || setgroups(0, NULL)) {
			perror("a tmpfs of our own (this test needs root)");
			_exit(2);
		}
		exit(run(from, operations));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int argc, char **argv)
{
	uint64_t from = (uint64_t)time(NULL);
	long operations = 20000;
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "-v")) {
		verbose = true;
		argv++;
		argc--;
	}
	if (argc > 1)
		from = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		operations = atol(argv[2]);
	r = in_child(from, operations);
	printf("seed %llu, %ld operations: %s\n", (unsigned long long)from, operations, r ? "FAILED" : "ok");
	return r;
}
