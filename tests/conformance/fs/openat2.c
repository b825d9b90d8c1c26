/* openat2: its struct, and what RESOLVE_* keep a look-up from. */
#include "../check.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int dir, root;

static int open2(int at, const char *path, unsigned flags, unsigned resolve)
{
	struct open_how how = { .flags = flags, .resolve = resolve };

	return (int)syscall(SYS_openat2, (long)at, path, &how, (long)sizeof how);
}

static int sized(const void *how, long size)
{
	return (int)syscall(SYS_openat2, (long)dir, "file", how, size);
}

/* The contents of a file that was opened, or the negative errno. */
static int says(int at, const char *path, unsigned resolve)
{
	int fd = open2(at, path, O_RDONLY, resolve);
	char text = 0;

	if (fd < 0)
		return -errno;
	if (read(fd, &text, 1) < 0)
		text = '!';
	close(fd);
	return text;
}

static void arguments(void)
{
	struct {
		struct open_how how;
		uint64_t more[3];
	} longer = { .how.flags = O_RDONLY };
	struct open_how how = { .flags = O_RDONLY };
	struct stat st;
	int fd;

	fd = sized(&longer, sizeof longer);
	CHECK(fd >= 0);
	close(fd);
	longer.more[2] = 1;
	CHECK_ERRNO(sized(&longer, sizeof longer), E2BIG);
	CHECK_ERRNO(sized(&how, sizeof how - 1), EINVAL);
	CHECK_ERRNO(sized(&how, 0), EINVAL);
	CHECK_ERRNO(sized(&how, 100000), E2BIG);
	CHECK_ERRNO(sized((void *)1, sizeof how), EFAULT);
	how.mode = 0600;
	CHECK_ERRNO(sized(&how, sizeof how), EINVAL);
	how.mode = 0;
	how.flags = 1ULL << 40;
	CHECK_ERRNO(sized(&how, sizeof how), EINVAL);
	how.flags = O_PATH | O_RDWR;
	CHECK_ERRNO(sized(&how, sizeof how), EINVAL);
	how.flags = O_RDONLY;
	how.resolve = 1ULL << 50;
	CHECK_ERRNO(sized(&how, sizeof how), EINVAL);
	CHECK_ERRNO(open2(dir, "file", O_RDONLY, RESOLVE_BENEATH | RESOLVE_IN_ROOT), EINVAL);
	CHECK_ERRNO(open2(dir, "new", O_CREAT | O_WRONLY, RESOLVE_CACHED), EAGAIN);
	CHECK_ERRNO(open2(dir, "file", O_TRUNC | O_WRONLY, RESOLVE_CACHED), EAGAIN);
	CHECK_ERRNO(open2(dir, "file", O_PATH | O_WRONLY, RESOLVE_CACHED), EINVAL);
	CHECK_ERRNO(open2(dir, "", O_RDONLY, 0), ENOENT);
	CHECK_ERRNO(open2(1000, "file", O_RDONLY, RESOLVE_BENEATH), EBADF);
	how = (struct open_how){ .flags = O_CREAT | O_WRONLY | O_CLOEXEC, .mode = 010600 };
	CHECK_ERRNO((int)syscall(SYS_openat2, (long)dir, "new", &how, (long)sizeof how), EINVAL);
	how.mode = 0640;
	how.resolve = RESOLVE_BENEATH;
	umask(022);
	fd = (int)syscall(SYS_openat2, (long)dir, "new", &how, (long)sizeof how);
	NEED(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0640);
	close(fd);
	CHECK_EQ(unlinkat(dir, "new", 0), 0);
}

static void resolving(void)
{
	char absolute[4200];

	CHECK_EQ(says(dir, "file", 0), 'i');
	CHECK_EQ(says(dir, "../outside", 0), 'o');
	CHECK_EQ(says(dir, "below/../file", RESOLVE_BENEATH), 'i');
	CHECK_EQ(says(dir, "below/back", RESOLVE_BENEATH), 'i');
	CHECK_EQ(says(dir, "../outside", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(dir, "below/../../outside", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(dir, "out", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(dir, "out", 0), 'o');
	NEED(getcwd(absolute, sizeof absolute - 16));
	strcat(absolute, "/dir/file");
	CHECK_EQ(says(dir, absolute, 0), 'i');
	CHECK_EQ(says(dir, absolute, RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(dir, "absolute", RESOLVE_BENEATH), -EXDEV);

	CHECK_EQ(says(dir, "/file", RESOLVE_IN_ROOT), 'i');
	CHECK_EQ(says(dir, "../../file", RESOLVE_IN_ROOT), 'i');
	CHECK_EQ(says(dir, "absolute", RESOLVE_IN_ROOT), 'i');
	CHECK_EQ(says(dir, "out", RESOLVE_IN_ROOT), -ENOENT);
	CHECK_EQ(says(dir, absolute, RESOLVE_IN_ROOT), -ENOENT);
	CHECK_EQ(says(dir, "/proc/self/status", RESOLVE_IN_ROOT), -ENOENT);
	CHECK_EQ(says(AT_FDCWD, "/dir/file", RESOLVE_IN_ROOT), 'i');

	CHECK_EQ(says(dir, "below/back", RESOLVE_NO_SYMLINKS), -ELOOP);
	CHECK_EQ(says(dir, "link/file", RESOLVE_NO_SYMLINKS), -ELOOP);
	CHECK_EQ(says(dir, "link/file", 0), 'b');
	CHECK_EQ(says(dir, "below/file", RESOLVE_NO_SYMLINKS), 'b');
	CHECK_EQ(says(dir, "below/../../outside", RESOLVE_NO_SYMLINKS), 'o');
	CHECK_EQ(says(dir, "below/back", RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV), 'i');
}

/* The root itself, in which the kernel's own trees are. */
static void from_the_root(void)
{
	CHECK_EQ(says(root, "proc/self/status", 0), 'N');
	CHECK_EQ(says(root, "proc/self/status", RESOLVE_BENEATH), 'N');
	CHECK_EQ(says(root, "/proc/self/status", RESOLVE_IN_ROOT), 'N');
	CHECK_EQ(says(root, "../../proc/self/status", RESOLVE_IN_ROOT), 'N');
	CHECK_EQ(says(root, "../proc/self/status", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(root, "/proc/self/status", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(root, "proc/self/status", RESOLVE_NO_SYMLINKS), -ELOOP);
	CHECK_EQ(says(root, "proc/uptime", RESOLVE_NO_SYMLINKS) >= '0', 1);
	CHECK_EQ(says(root, "proc/uptime", RESOLVE_NO_XDEV), -EXDEV);
	CHECK_EQ(says(dir, "/proc/uptime", RESOLVE_NO_XDEV), -EXDEV);
	CHECK_EQ(says(dir, "/proc/self/cwd/dir/file", 0), 'i');
	CHECK_EQ(says(dir, "/proc/self/cwd/dir/file", RESOLVE_NO_MAGICLINKS), -ELOOP);
	CHECK_EQ(says(dir, "/proc/self/status", RESOLVE_NO_MAGICLINKS), 'N');
	CHECK_EQ(says(dir, "/proc/self/exe", RESOLVE_NO_MAGICLINKS), -ELOOP);
	CHECK_EQ(says(dir, "/proc/self/root/proc/uptime", RESOLVE_NO_MAGICLINKS), -ELOOP);
	CHECK_EQ(says(root, "proc/self/root/proc/uptime", RESOLVE_BENEATH), -EXDEV);
}

/* The kernel's own trees, from directories in them. */
static void in_the_trees(void)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY), self = open("/proc/self", O_RDONLY | O_DIRECTORY),
	    dev = open("/dev", O_RDONLY | O_DIRECTORY);
	int here = open(".", O_RDONLY | O_DIRECTORY), fd;
	struct stat st, top;

	NEED(proc >= 0 && self >= 0 && dev >= 0 && here >= 0);
	CHECK_EQ(says(proc, "self/status", RESOLVE_BENEATH), 'N');
	CHECK_EQ(says(proc, "self/task/../status", RESOLVE_BENEATH), 'N');
	CHECK_EQ(says(proc, "./self/../self/./status", RESOLVE_BENEATH), 'N');
	CHECK_EQ(says(proc, "../proc/self/status", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(proc, "self/../../proc/uptime", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(proc, "/proc/uptime", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(proc, "self/cwd/dir/file", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(proc, "self/cwd/dir/file", RESOLVE_IN_ROOT), -EXDEV);
	CHECK_EQ(says(proc, "self/cwd/dir/file", 0), 'i');
	CHECK_EQ(says(proc, "self/status", RESOLVE_NO_SYMLINKS), -ELOOP);
	CHECK_EQ(says(proc, "self/none", RESOLVE_BENEATH), -ENOENT);
	CHECK_EQ(says(proc, "/self/status", RESOLVE_IN_ROOT), 'N');
	CHECK_EQ(says(proc, "//../../self/status", RESOLVE_IN_ROOT), 'N');
	CHECK_EQ(says(proc, "/proc/self/status", RESOLVE_IN_ROOT), -ENOENT);
	fd = open2(proc, "/", O_PATH, RESOLVE_IN_ROOT);
	CHECK(fstat(fd, &st) == 0 && fstat(proc, &top) == 0 && st.st_dev == top.st_dev && st.st_ino == top.st_ino);
	close(fd);
	CHECK_EQ(says(self, "status", RESOLVE_BENEATH), 'N');
	CHECK_EQ(says(self, "../uptime", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(self, "../uptime", 0) >= '0', 1);
	CHECK_EQ(says(self, "../status", RESOLVE_IN_ROOT), 'N');
	CHECK_EQ(says(dev, "null", RESOLVE_BENEATH), 0);
	CHECK_EQ(says(dev, "fd/0", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(dev, "fd/0", RESOLVE_IN_ROOT), -ENOENT);
	CHECK_EQ(says(root, "/proc/self/cwd/dir/file", RESOLVE_IN_ROOT), -EXDEV);
	NEED(chdir("/proc") == 0);
	CHECK_EQ(says(AT_FDCWD, "self/status", RESOLVE_BENEATH), 'N');
	CHECK_EQ(says(AT_FDCWD, "../proc/uptime", RESOLVE_BENEATH), -EXDEV);
	CHECK_EQ(says(AT_FDCWD, "/uptime", RESOLVE_IN_ROOT) >= '0', 1);
	CHECK_EQ(says(root, "/proc/self/status", RESOLVE_IN_ROOT), 'N');
	CHECK_EQ(says(root, "../proc/uptime", RESOLVE_IN_ROOT | RESOLVE_NO_XDEV), -EXDEV);
	NEED(fchdir(here) == 0);
	close(proc);
	close(self);
	close(dev);
	close(here);
}

int main(void)
{
	if (syscall(SYS_openat2, -1L, "x", 0L, 0L) < 0 && errno == ENOSYS) {
		printf("the kernel has no openat2\n");
		return 77;
	}
	NEED(mkdir("dir", 0700) == 0 && mkdir("dir/below", 0700) == 0);
	close(check_file("outside", "outside"));
	close(check_file("dir/file", "inside"));
	close(check_file("dir/below/file", "below"));
	NEED(symlink("../outside", "dir/out") == 0 && symlink("../file", "dir/below/back") == 0);
	NEED(symlink("/file", "dir/absolute") == 0 && symlink("below", "dir/link") == 0);
	dir = open("dir", O_RDONLY | O_DIRECTORY);
	root = open("/", O_RDONLY | O_DIRECTORY);
	NEED(dir >= 0 && root >= 0);
	arguments();
	resolving();
	from_the_root();
	in_the_trees();
	close(dir);
	close(root);
	unlink("dir/out");
	unlink("dir/link");
	unlink("dir/absolute");
	unlink("dir/below/back");
	unlink("dir/below/file");
	unlink("dir/file");
	unlink("outside");
	rmdir("dir/below");
	rmdir("dir");
	return check_done();
}
