/* Tries everything that changes a tree which may not be changed, but for `rw`, and prints how it
 * ended. Linux prints the same on a read-only mount with a writable one in it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define TRY(call) (errno = 0, report(#call, (long)(call)))

static void report(const char *what, long r)
{
	printf("%s: %d\n", what, r == -1 ? errno : 0);
}

static long opened(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags, 0600);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static long bound(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strcpy(a.sun_path, path);
	r = bind(s, (struct sockaddr *)&a, sizeof a);
	close(s);
	return r;
}

static long mapped(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? -1 : munmap(p, 4096);
}

static void by_path(const char *f, const char *none, const char *d)
{
	struct timespec now[2] = { { 1, 0 }, { 1, 0 } };
	char deep[64];

	printf("-- %s\n", f);
	snprintf(deep, sizeof deep, "%s/x", d);
	TRY(opened(AT_FDCWD, f, O_WRONLY));
	TRY(opened(AT_FDCWD, f, O_RDWR));
	TRY(opened(AT_FDCWD, f, O_RDONLY | O_TRUNC));
	TRY(opened(AT_FDCWD, f, O_RDONLY | O_CREAT));
	TRY(opened(AT_FDCWD, f, O_RDONLY | O_CREAT | O_EXCL));
	TRY(opened(AT_FDCWD, f, O_WRONLY | O_APPEND));
	TRY(opened(AT_FDCWD, none, O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, none, O_WRONLY));
	TRY(unlink(none));
	TRY(opened(AT_FDCWD, d, O_TMPFILE | O_RDWR));
	TRY(truncate(f, 1));
	TRY(mkdir(none, 0700));
	TRY(rmdir(none));
	TRY(mkdir(d, 0700));
	TRY(mknod(none, S_IFREG | 0600, 0));
	TRY(mknod(f, S_IFREG | 0600, 0));
	TRY(unlink(none));
	TRY(symlink("f", none));
	TRY(symlink("f", f));
	TRY(rename(f, none));
	TRY(rename(none, f));
	TRY(link(f, none));
	TRY(unlink(none));
	TRY(chmod(f, 0640));
	TRY(chown(f, -1, -1));
	TRY(lchown(f, -1, -1));
	TRY(utimensat(AT_FDCWD, f, now, 0));
	TRY(utimensat(AT_FDCWD, f, now, AT_SYMLINK_NOFOLLOW));
	TRY(utime(f, NULL));
	TRY(utimes(f, NULL));
	TRY(setxattr(f, "user.x", "y", 1, 0));
	TRY(removexattr(f, "user.x"));
	TRY(access(f, R_OK));
	TRY(access(f, W_OK));
	TRY(access(d, W_OK));
	TRY(faccessat(AT_FDCWD, none, W_OK, 0));
	TRY(syscall(SYS_renameat2, AT_FDCWD, f, AT_FDCWD, f, 2));
	TRY(bound(none));
	TRY(unlink(none));
	TRY(bound(f));
	TRY(opened(AT_FDCWD, deep, O_CREAT | O_WRONLY));
	TRY(unlink(deep));
	TRY(rmdir(f));
	TRY(unlink(d));
}

static void by_descriptor(const char *f, const char *d)
{
	int fd = open(f, O_RDONLY), dir = open(d, O_RDONLY | O_DIRECTORY), path = open(f, O_PATH);
	struct timespec now[2] = { { 1, 0 }, { 1, 0 } };
	char name[40];

	printf("-- descriptors of %s\n", f);
	TRY(fchmod(fd, 0640));
	TRY(fchown(fd, -1, -1));
	TRY(futimens(fd, now));
	TRY(futimes(fd, NULL));
	TRY(fsetxattr(fd, "user.x", "y", 1, 0));
	TRY(fremovexattr(fd, "user.x"));
	TRY(ftruncate(fd, 1));
	TRY(fallocate(fd, 0, 0, 10));
	TRY(mapped(fd));
	TRY(write(fd, "x", 1));
	TRY(fchmodat(dir, ".", 0750, 0));
	TRY(opened(dir, "x", O_CREAT | O_WRONLY));
	TRY(unlinkat(dir, "x", 0));
	TRY(opened(dir, ".", O_TMPFILE | O_WRONLY));
	TRY(opened(dir, "", O_WRONLY));
	TRY(syscall(SYS_utimensat, path, "", now, AT_EMPTY_PATH));
	TRY(fchownat(path, "", -1, -1, AT_EMPTY_PATH));
	TRY(syscall(SYS_fchown, path, -1, -1));
	TRY(syscall(SYS_fchmod, path, 0600));
	TRY(mkdirat(fd, "x", 0700));
	TRY(openat(-1, f, O_WRONLY | O_DIRECTORY));
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	TRY(opened(AT_FDCWD, name, O_WRONLY));
	TRY(opened(AT_FDCWD, name, O_RDWR | O_TRUNC));
	TRY(chmod(name, 0640));
	TRY(truncate(name, 3));
	TRY(linkat(AT_FDCWD, name, AT_FDCWD, "rw/linked", AT_SYMLINK_FOLLOW));
	TRY(unlink("rw/linked"));
	TRY(linkat(fd, "", AT_FDCWD, "rw/linked", AT_EMPTY_PATH));
	TRY(unlink("rw/linked"));
	snprintf(name, sizeof name, "/proc/self/fd/%d/x", dir);
	TRY(opened(AT_FDCWD, name, O_WRONLY | O_CREAT));
	TRY(unlink(name));
	TRY(opened(AT_FDCWD, "/proc/self/cwd/made", O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "/proc/thread-self/cwd/f", O_WRONLY));
	TRY(opened(AT_FDCWD, "/dev/fd/../../proc/self/cwd/f", O_WRONLY));
	close(fd);
	close(dir);
	close(path);
}

/* Between what may be changed and what may not. Linux says EXDEV where the two are two mounts. */
static void across(void)
{
	printf("-- across\n");
	TRY(rename("f", "rw/stolen") == -1 && (errno == EROFS || errno == EXDEV) ? 0 : 1);
	TRY(rename("rw/f", "put") == -1 && (errno == EROFS || errno == EXDEV) ? 0 : 1);
	TRY(link("f", "rw/stolen") == -1 && (errno == EROFS || errno == EXDEV) ? 0 : 1);
	TRY(link("rw/f", "put") == -1 && (errno == EROFS || errno == EXDEV) ? 0 : 1);
	TRY(access("rw/stolen", F_OK));
	TRY(access("put", F_OK));
	TRY(opened(AT_FDCWD, "rw/../f", O_WRONLY));
	TRY(opened(AT_FDCWD, "rw/../rw/f", O_WRONLY));
	TRY(opened(AT_FDCWD, "rw/./d/../../rw/f", O_WRONLY));
	TRY(symlink("../f", "rw/out"));
	TRY(opened(AT_FDCWD, "rw/out", O_WRONLY));
	TRY(truncate("rw/out", 0));
	TRY(lchown("rw/out", -1, -1));
	TRY(chown("rw/out", -1, -1));
	TRY(unlink("rw/out"));
	TRY(symlink("../made", "rw/out"));
	TRY(opened(AT_FDCWD, "rw/out", O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "rw/out", O_WRONLY | O_CREAT | O_EXCL));
	TRY(unlink("rw/out"));
	TRY(symlink("..", "rw/up"));
	TRY(opened(AT_FDCWD, "rw/up/made", O_WRONLY | O_CREAT));
	TRY(mkdir("rw/up/made", 0700));
	TRY(mkdir("rw/up/made/", 0700));
	TRY(unlink("rw/up/f"));
	TRY(unlink("rw/up"));
	TRY(opened(AT_FDCWD, "in", O_WRONLY));
	TRY(opened(AT_FDCWD, "rw", O_TMPFILE | O_RDWR));
	TRY(opened(AT_FDCWD, ".", O_TMPFILE | O_RDWR));
	TRY(rename("rw", "wr") == -1 ? 0 : 1);
	TRY(rmdir("rw") == -1 ? 0 : 1);
}

static void odd(void)
{
	char longest[4200], name[300];

	printf("-- odd\n");
	memset(longest, '/', sizeof longest);
	longest[sizeof longest - 1] = 0;
	TRY(mkdir(longest, 0700));
	longest[4000] = 'f';
	longest[4001] = 0;
	TRY(opened(AT_FDCWD, longest, O_WRONLY));
	memset(name, 'n', sizeof name);
	name[255] = 0;
	TRY(mkdir(name, 0700));
	name[255] = 'n';
	name[256] = 0;
	TRY(mkdir(name, 0700));
	TRY(mkdir("", 0700));
	TRY(mkdir(NULL, 0700));
	TRY(mkdir((char *)8, 0700));
	TRY(mkdir("none/x", 0700));
	TRY(mkdir("f/x", 0700));
	TRY(mkdir("loop/x", 0700));
	TRY(opened(AT_FDCWD, "loop", O_WRONLY));
	TRY(opened(AT_FDCWD, "loop", O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "link", O_WRONLY));
	TRY(opened(AT_FDCWD, "link", O_WRONLY | O_NOFOLLOW));
	TRY(opened(AT_FDCWD, "dangling", O_WRONLY));
	TRY(opened(AT_FDCWD, "dangling", O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "d/", O_WRONLY));
	TRY(opened(AT_FDCWD, "f/", O_WRONLY));
	TRY(opened(99, "f", O_WRONLY));
	TRY(unlinkat(AT_FDCWD, "f", 0x40000));
	TRY(fchownat(AT_FDCWD, "f", -1, -1, 0x40000));
	TRY(chmod("link", 0600));
	TRY(lchown("link", -1, -1));
	TRY(opened(AT_FDCWD, "/dev/null", O_WRONLY));
	TRY(opened(AT_FDCWD, "/dev/null", O_RDWR | O_CREAT | O_TRUNC));
	TRY(opened(AT_FDCWD, "fifo", O_RDWR));
}

/* Neither files in memory nor pipes are in the tree. */
static void elsewhere(void)
{
	int fd = syscall(SYS_memfd_create, "../f", 2), pipes[2];

	printf("-- elsewhere\n");
	TRY(ftruncate(fd, 4096));
	TRY(mapped(fd));
	TRY(fallocate(fd, 0, 0, 8192));
	TRY(pipe(pipes));
	TRY(write(pipes[1], "x", 1));
	close(fd);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	by_path("f", "none", "d");
	by_path("rw/f", "rw/none", "rw/d");
	by_path("link", "dangling", "dlink");
	by_descriptor("f", "d");
	by_descriptor("rw/f", "rw/d");
	across();
	odd();
	elsewhere();
	return 0;
}
