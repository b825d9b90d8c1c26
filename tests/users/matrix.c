/*
 * Every call on names x kind of file x its owner and mode x its directory x caller: one line for
 * each, with what the call said and what became of the file. tests/users/run compares what this
 * prints on Linux with what it prints in cages.
 *
 *     matrix DIRECTORY [devices|few]
 *
 * With `few`, some files of every kind, for grates between the program and its files.
 *
 * DIRECTORY is empty. Without root there is one caller, and all files are its own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OWNER  1000
#define FELLOW 2000 /* of the owner's group */
#define OTHER  3000

static int root, here, went;
static uid_t self;

static void die(const char *what)
{
	printf("matrix: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* C libraries have words of their own. */
static const char *error_name(int error)
{
	static char number[16];

	switch (error) {
	case EACCES:
		return "EACCES";
	case EPERM:
		return "EPERM";
	case ENOENT:
		return "ENOENT";
	case ENOEXEC:
		return "ENOEXEC";
	case ENODATA:
		return "ENODATA";
	case EEXIST:
		return "EEXIST";
	case ENOTDIR:
		return "ENOTDIR";
	case EISDIR:
		return "EISDIR";
	case EINVAL:
		return "EINVAL";
	case ELOOP:
		return "ELOOP";
	case ENAMETOOLONG:
		return "ENAMETOOLONG";
	}
	snprintf(number, sizeof number, "errno %d", error);
	return number;
}

struct caller {
	const char *name;
	uid_t real, effective, files;
	gid_t gid;
	int group_count;
	gid_t groups[2];
};

static const struct caller callers[] = {
	{ "root", 0, 0, 0, 0, 0, { 0 } },
	{ "owner", OWNER, OWNER, OWNER, OWNER, 0, { 0 } },
	{ "fellow", FELLOW, FELLOW, FELLOW, FELLOW, 2, { 5, OWNER } },
	{ "other", OTHER, OTHER, OTHER, OTHER, 1, { 5 } },
	{ "root-for-owner", 0, OWNER, OWNER, OWNER, 0, { 0 } },
	{ "owner-as-root", OWNER, 0, 0, OWNER, 0, { 0 } },
	{ "files-of-owner", 0, 0, OWNER, 0, 0, { 0 } },
};

static void become(const struct caller *c)
{
	if (!root)
		return;
	if (setgroups((size_t)c->group_count, c->groups) || setresgid(c->gid, c->gid, 0) ||
	    setresuid(c->real, c->effective, 0))
		die("cannot become");
	if (c->files != c->effective) {
		setfsuid(c->files);
		if ((uid_t)setfsuid((uid_t)-1) != c->files)
			die("setfsuid");
	}
}

static void back(void)
{
	if (!root)
		return;
	/* First: setresuid(2) gives no capabilities to who was root but for files. */
	setfsuid(0);
	if (setresuid(0, 0, 0) || setresgid(0, 0, 0) || setgroups(0, NULL))
		die("cannot come back");
}

static int opens(const char *path, int flags)
{
	int fd = open(path, flags | O_NONBLOCK | O_NOCTTY, 0666);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int in(const char *dir, char *path, const char *name)
{
	return snprintf(path, 256, "%s/%s", dir, name);
}

#define INSIDE(path, name) \
	char inside[256]; \
	in(path, inside, name)

static int open_read(const char *p)
{
	return opens(p, O_RDONLY);
}
static int open_write(const char *p)
{
	return opens(p, O_WRONLY);
}
static int open_both(const char *p)
{
	return opens(p, O_RDWR);
}
static int open_empty(const char *p)
{
	return opens(p, O_WRONLY | O_TRUNC);
}
static int open_create(const char *p)
{
	return opens(p, O_WRONLY | O_CREAT);
}
static int open_exclusive(const char *p)
{
	return opens(p, O_WRONLY | O_CREAT | O_EXCL);
}
static int open_path(const char *p)
{
	return opens(p, O_PATH);
}
static int open_directory(const char *p)
{
	return opens(p, O_RDONLY | O_DIRECTORY);
}
static int open_nofollow(const char *p)
{
	return opens(p, O_RDONLY | O_NOFOLLOW);
}
static int open_noatime(const char *p)
{
	return opens(p, O_RDONLY | O_NOATIME);
}
static int open_tmpfile(const char *p)
{
	return opens(p, O_RDWR | O_TMPFILE);
}
static int create_inside(const char *p)
{
	INSIDE(p, "made");
	return opens(inside, O_WRONLY | O_CREAT | O_EXCL);
}
static int open_inside(const char *p)
{
	INSIDE(p, "inner");
	return opens(inside, O_RDONLY);
}
static int write_open(const char *p)
{
	int fd = open(p, O_WRONLY | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0)
		return -1;
	r = write(fd, "x", 1) == 1 ? 0 : -1;
	close(fd);
	return r;
}
static int stat_(const char *p)
{
	struct stat st;
	return stat(p, &st);
}
static int lstat_(const char *p)
{
	struct stat st;
	return lstat(p, &st);
}
static int stat_inside(const char *p)
{
	struct stat st;
	INSIDE(p, "inner");
	return lstat(inside, &st);
}
static int statfs_(const char *p)
{
	struct statfs st;
	return statfs(p, &st);
}
static int access_exists(const char *p)
{
	return access(p, F_OK);
}
static int access_read(const char *p)
{
	return access(p, R_OK);
}
static int access_write(const char *p)
{
	return access(p, W_OK);
}
static int access_execute(const char *p)
{
	return access(p, X_OK);
}
static int access_all(const char *p)
{
	return access(p, R_OK | W_OK | X_OK);
}
static int effective_access(const char *p, int mode)
{
	return (int)syscall(SYS_faccessat2, (long)AT_FDCWD, (long)p, (long)mode, (long)AT_EACCESS);
}
static int eaccess_read(const char *p)
{
	return effective_access(p, R_OK);
}
static int eaccess_write(const char *p)
{
	return effective_access(p, W_OK);
}
static int eaccess_execute(const char *p)
{
	return effective_access(p, X_OK);
}
static int readlink_(const char *p)
{
	char b[8];
	return readlink(p, b, sizeof b) < 0 ? -1 : 0;
}
static int truncate_(const char *p)
{
	return truncate(p, 3);
}
static int chmod_(const char *p)
{
	return chmod(p, 0604);
}
static int chmod_set_ids(const char *p)
{
	return chmod(p, 06775);
}
static int fchmod_(const char *p)
{
	int fd = open(p, O_RDONLY | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0)
		return -1;
	r = fchmod(fd, 0611);
	close(fd);
	return r;
}
static int chown_self(const char *p)
{
	return chown(p, geteuid(), (gid_t)-1);
}
static int chown_other(const char *p)
{
	return chown(p, root ? OTHER : self + 1, (gid_t)-1);
}
static int chown_group(const char *p)
{
	return chown(p, (uid_t)-1, root ? OWNER : getgid());
}
static int chown_group_5(const char *p)
{
	return chown(p, (uid_t)-1, 5);
}
static int chown_nothing(const char *p)
{
	return chown(p, (uid_t)-1, (gid_t)-1);
}
static int lchown_self(const char *p)
{
	return lchown(p, geteuid(), getegid());
}
static int utimens(const char *p, long a, long m)
{
	struct timespec t[2] = { { 1, a }, { 2, m } };

	return utimensat(AT_FDCWD, p, t, 0);
}
static int utimens_now(const char *p)
{
	return utimensat(AT_FDCWD, p, NULL, 0);
}
static int utimens_set(const char *p)
{
	return utimens(p, 0, 0);
}
static int utimens_one(const char *p)
{
	return utimens(p, UTIME_NOW, UTIME_OMIT);
}
static int utimens_none(const char *p)
{
	return utimens(p, UTIME_OMIT, UTIME_OMIT);
}
static int utimens_link(const char *p)
{
	struct timespec t[2] = { { 1, 0 }, { 2, 0 } };

	return utimensat(AT_FDCWD, p, t, AT_SYMLINK_NOFOLLOW);
}
static int mkdir_(const char *p)
{
	return mkdir(p, 0777);
}
static int mkdir_inside(const char *p)
{
	INSIDE(p, "made");
	return mkdir(inside, 0777);
}
static int rmdir_(const char *p)
{
	return rmdir(p);
}
static int unlink_(const char *p)
{
	return unlink(p);
}
static int unlink_inside(const char *p)
{
	INSIDE(p, "inner");
	return unlink(inside);
}
static int link_from(const char *p)
{
	return link(p, "new");
}
static int link_to(const char *p)
{
	return link("spare", p);
}
static int link_inside(const char *p)
{
	INSIDE(p, "made");
	return link("spare", inside);
}
static int symlink_(const char *p)
{
	return symlink("x", p);
}
static int symlink_inside(const char *p)
{
	INSIDE(p, "made");
	return symlink("x", inside);
}
static int rename_from(const char *p)
{
	return rename(p, "new");
}
static int rename_away(const char *p)
{
	return rename(p, "../open/new");
}
static int rename_to(const char *p)
{
	return rename("spare", p);
}
static int rename_exchange(const char *p)
{
	return (int)syscall(SYS_renameat2, (long)AT_FDCWD, (long)p, (long)AT_FDCWD, (long)"spare", 2L);
}
static int rename_out(const char *p)
{
	INSIDE(p, "inner");
	return rename(inside, "new");
}
static int mknod_fifo(const char *p)
{
	INSIDE(p, "made");
	return mknod(inside, S_IFIFO | 0666, 0);
}
static int mknod_file(const char *p)
{
	INSIDE(p, "made");
	return mknod(inside, S_IFREG | 0666, 0);
}
static int mknod_socket(const char *p)
{
	INSIDE(p, "made");
	return mknod(inside, S_IFSOCK | 0666, 0);
}
static int mknod_here(const char *p)
{
	return mknod(p, S_IFIFO | 0666, 0);
}
static int mknod_device(const char *p)
{
	(void)p;
	return mknod("new", S_IFCHR | 0666, makedev(1, 3));
}
static int chdir_(const char *p)
{
	/* The caller may not be allowed back. */
	went = chdir(p) == 0;
	return went ? 0 : -1;
}
/* The file holds no program: whether it may be run is what differs. */
static int execve_(const char *p)
{
	char *none[] = { NULL };
	return execve(p, none, none);
}
static int watch(const char *p)
{
	int fd = inotify_init1(0), r = inotify_add_watch(fd, p, IN_MODIFY), e = errno;

	close(fd);
	errno = e;
	return r < 0 ? -1 : 0;
}
static int list(const char *p)
{
	DIR *d = opendir(p);

	if (!d)
		return -1;
	closedir(d);
	return 0;
}
static int setxattr_(const char *p)
{
	return setxattr(p, "user.a", "b", 1, 0);
}
static int removexattr_(const char *p)
{
	return removexattr(p, "user.none");
}
static int getxattr_(const char *p)
{
	char b[8];
	return getxattr(p, "user.none", b, sizeof b) < 0 ? -1 : 0;
}
static int unix_at(const char *p, int (*act)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0), r, e;

	strncpy(at.sun_path, p, sizeof at.sun_path - 1);
	r = act(s, (void *)&at, sizeof at);
	e = errno;
	close(s);
	errno = e;
	return r;
}
static int connect_(const char *p)
{
	return unix_at(p, connect);
}
static int bind_(const char *p)
{
	return unix_at(p, bind);
}
static int bind_inside(const char *p)
{
	INSIDE(p, "made");
	return unix_at(inside, bind);
}

static const struct {
	const char *name;
	int (*act)(const char *path);
} calls[] = {
#define CALL(name) { #name, name }
	CALL(open_read),
	CALL(open_write),
	CALL(open_both),
	CALL(open_empty),
	CALL(open_create),
	CALL(open_exclusive),
	CALL(open_path),
	CALL(open_directory),
	CALL(open_nofollow),
	CALL(open_noatime),
	CALL(open_tmpfile),
	CALL(create_inside),
	CALL(open_inside),
	CALL(write_open),
	CALL(stat_),
	CALL(lstat_),
	CALL(stat_inside),
	CALL(statfs_),
	CALL(access_exists),
	CALL(access_read),
	CALL(access_write),
	CALL(access_execute),
	CALL(access_all),
	CALL(eaccess_read),
	CALL(eaccess_write),
	CALL(eaccess_execute),
	CALL(readlink_),
	CALL(truncate_),
	CALL(chmod_),
	CALL(chmod_set_ids),
	CALL(fchmod_),
	CALL(chown_self),
	CALL(chown_other),
	CALL(chown_group),
	CALL(chown_group_5),
	CALL(chown_nothing),
	CALL(lchown_self),
	CALL(utimens_now),
	CALL(utimens_set),
	CALL(utimens_one),
	CALL(utimens_none),
	CALL(utimens_link),
	CALL(mkdir_),
	CALL(mkdir_inside),
	CALL(rmdir_),
	CALL(unlink_),
	CALL(unlink_inside),
	CALL(link_from),
	CALL(link_to),
	CALL(link_inside),
	CALL(symlink_),
	CALL(symlink_inside),
	CALL(rename_from),
	CALL(rename_away),
	CALL(rename_to),
	CALL(rename_exchange),
	CALL(rename_out),
	CALL(mknod_fifo),
	CALL(mknod_file),
	CALL(mknod_socket),
	CALL(mknod_here),
	CALL(chdir_),
	CALL(list),
	CALL(setxattr_),
	CALL(getxattr_),
	CALL(removexattr_),
	CALL(execve_),
	CALL(watch),
	CALL(connect_),
	CALL(bind_),
	CALL(bind_inside),
};

static const char *const kinds[] = { "file", "directory", "full", "link", "link-to-directory", "dangling", "fifo",
	"socket", "missing", "device" };
enum { FILE_, DIRECTORY, FULL, LINK, LINK_TO_DIRECTORY, DANGLING, FIFO, SOCKET, MISSING, DEVICE };

static void owned(const char *name, uid_t uid, mode_t mode)
{
	if (root && lchown(name, uid, uid))
		die("lchown");
	if (mode != (mode_t)-1 && chmod(name, mode))
		die("chmod");
}

static void file(const char *name, uid_t uid, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || write(fd, "data", 4) != 4)
		die(name);
	close(fd);
	owned(name, uid, mode);
}

static void directory(const char *name, uid_t uid, mode_t mode, int full)
{
	char inside[256];

	if (mkdir(name, 0700))
		die(name);
	if (full) {
		in(name, inside, "inner");
		file(inside, root ? 0 : self, 0644);
	}
	owned(name, uid, mode);
}

/* The thing itself, called `it`, and what it leads to. */
static void make(int kind, uid_t uid, mode_t mode)
{
	switch (kind) {
	case FILE_:
		file("it", uid, mode);
		break;
	case DIRECTORY:
		directory("it", uid, mode, 0);
		break;
	case FULL:
		directory("it", uid, mode, 1);
		break;
	case LINK:
		file("target", uid, mode);
		break;
	case LINK_TO_DIRECTORY:
		directory("target", uid, mode, 1);
		break;
	case FIFO:
		if (mkfifo("it", 0600))
			die("mkfifo");
		owned("it", uid, mode);
		break;
	case SOCKET:
		if (mknod("it", S_IFSOCK | 0600, 0))
			die("mknod");
		owned("it", uid, mode);
		break;
	case DEVICE:
		if (mknod("it", S_IFCHR | 0600, makedev(1, 3)))
			die("device");
		owned("it", uid, mode);
		break;
	}
	if (kind == LINK || kind == LINK_TO_DIRECTORY || kind == DANGLING) {
		if (symlink("target", "it"))
			die("symlink");
		owned("it", uid, (mode_t)-1);
	}
	file("spare", root ? OWNER : self, 0666);
}

/* Removes and prints all files that are there. */
static void clean(const char *dir, int depth, int tell)
{
	static const char *const names[] = { "it", "target", "spare", "new", "made", "inner" };
	char path[256];
	struct stat st;

	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		in(dir, path, names[n]);
		if (lstat(path, &st))
			continue;
		if (tell && strcmp(path, "./spare"))
			printf(" %s:%o,%d,%d,%d", path, st.st_mode, (int)st.st_uid, (int)st.st_gid,
			    S_ISREG(st.st_mode) ? (int)st.st_size : 0);
		if (S_ISDIR(st.st_mode)) {
			if (chmod(path, 0700) || (depth < 3 && (clean(path, depth + 1, tell), 0)) || rmdir(path))
				die(path);
		} else if (unlink(path))
			die(path);
	}
}

static void one(int kind, uid_t uid, mode_t mode, mode_t above, const struct caller *c, size_t call)
{
	int r, e;

	if (chmod("../work", 0700))
		die("chmod");
	make(kind, uid, mode);
	if (chmod("../work", above))
		die("chmod");
	become(c);
	errno = 0;
	r = calls[call].act("it");
	e = r < 0 ? errno : 0;
	back();
	if (went && fchdir(here))
		die("fchdir");
	went = 0;
	printf("%s %s %d %o %o %s: %s", calls[call].name, kinds[kind], (int)(uid == self ? 0 : uid), mode, above,
	    c->name, e ? error_name(e) : "ok");
	/* The remaining files show whether the call did what it returned. */
	if (chmod("../work", 0700))
		die("chmod");
	clean(".", 0, 1);
	clean("../open", 0, 1);
	puts("");
}

/*
 * A path from the working directory is as long as a path may be, and longer from the root: what
 * looks at whole paths has to let it through. And names and paths that are too long.
 */
static void long_paths(void)
{
	static char name[NAME_MAX + 2], path[PATH_MAX + 1];
	static const size_t lengths[] = { NAME_MAX, NAME_MAX + 1 };
	struct stat st;

	memset(name, 'n', NAME_MAX);
	for (int i = 0; i < 9; i++)
		if (mkdir(name, 0755) || chdir(name))
			die("a long path");
	for (int i = 0; i < 9; i++)
		if (sprintf(path + strlen(path), "%s%s", i ? "/" : "", name), mkdir(path, 0755))
			die("a longer path");
	strcat(path, "/it");
#define SAY(call) \
	do { \
		errno = 0; \
		int r_ = call; \
		printf("long %s: %s\n", #call, r_ < 0 ? error_name(errno) : "ok"); \
	} while (0)
	SAY(opens(path, O_WRONLY | O_CREAT | O_EXCL));
	SAY(open_both(path));
	SAY(truncate_(path));
	SAY(stat_(path));
	SAY(chmod_(path));
	SAY(utimens_now(path));
	SAY(rename_to(path));
	SAY(rename(path, "it"));
	SAY(link("it", path));
	SAY(chdir_(path));
	SAY(unlink_(path));
	SAY(unlink_("it"));
	for (int i = 0; i < 9; i++) {
		*strrchr(path, '/') = 0;
		if (rmdir(path))
			die(path);
	}
	for (int i = 0; i < 9; i++)
		if (chdir("..") || rmdir(name))
			die("cannot go back");
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		memset(path, 0, sizeof path);
		memset(path, 'l', lengths[i]);
		SAY(lstat(path, &st));
		SAY(mkdir(path, 0755));
		SAY(rename(path, "it"));
		SAY(rmdir("it"));
		SAY(open_create(path));
		SAY(truncate_(path));
		SAY(unlink(path));
	}
	memset(path, '/', PATH_MAX);
	SAY(truncate_(path));
	SAY(mkdir_(path));
	path[PATH_MAX - 1] = 0;
	SAY(mkdir_(path));
	SAY(chdir_(path));
	if (fchdir(here))
		die("fchdir");
#undef SAY
}

int main(int argc, char **argv)
{
	static const mode_t modes[] = { 0000, 0640, 0755, 06777 }, aboves[] = { 0755, 0777, 01777, 0700, 0711 };
	int devices = argc > 2 && !strcmp(argv[2], "devices"), few = argc > 2 && !devices,
	    last = devices ? DEVICE : MISSING;
	size_t who, call, m, a;

	self = getuid();
	root = self == 0;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	umask(022);
	if (argc < 2 || chdir(argv[1]) || chmod(".", 0755) || mkdir("open", 0700) || mkdir("work", 0755) ||
	    chmod("open", 01777) || chdir("work"))
		die("start");
	if ((here = open(".", O_PATH | O_DIRECTORY)) < 0)
		die("start");
	for (int kind = 0; kind <= last; kind++)
		for (int owner = 0; owner <= root; owner++)
			for (m = few; m < sizeof modes / sizeof *modes - few; m++)
				for (a = few ? m + 1 : 0; a < (few ? m + 2 : sizeof aboves / sizeof *aboves); a++)
					for (who = root && few; who < (!root ? 1
									      : few ? 4
										    : sizeof callers / sizeof *callers);
					    who++)
						for (call = 0; call < sizeof calls / sizeof *calls; call++)
							one(kind, owner ? OWNER : self, modes[m], aboves[a],
							    &callers[who], call);
	long_paths();
	if (devices)
		for (who = 0; who < sizeof callers / sizeof *callers; who++) {
			become(&callers[who]);
			int r = mknod_device(NULL), e = errno;
			back();
			printf("mknod_device %s: %s", callers[who].name, r ? error_name(e) : "ok");
			clean(".", 0, 1);
			puts("");
		}
	if (chdir("..") || rmdir("work") || rmdir("open"))
		die("end");
	return 0;
}
