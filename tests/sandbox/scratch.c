/* scratch DIR: for how many files a directory has room, how each call that makes or removes a
 * name changes that, and whether files in it take attributes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static long left(void)
{
	struct statfs now;

	return statfs(".", &now) ? -1 : (long)now.f_ffree;
}

static void says(const char *what, int r)
{
	static long before;
	long now = left();

	printf("%s: %s, %+ld\n", what, r < 0 ? strerror(errno) : "ok", before ? now - before : 0);
	before = now;
}

static int opened(const char *name, int flags)
{
	int fd = open(name, flags | O_WRONLY, 0600);

	return fd < 0 ? -1 : close(fd);
}

static int unnamed(void)
{
	int fd = open(".", O_TMPFILE | O_RDWR, 0600), r;
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	r = fd < 0 ? -1 : linkat(AT_FDCWD, path, AT_FDCWD, "unnamed", AT_SYMLINK_FOLLOW);
	close(fd);
	return r;
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = { AF_UNIX, "socket" };
	struct statfs all;

	if (argc < 2 || chdir(argv[1]) || statfs(".", &all))
		return 1;
	printf("%ld files\n", (long)all.f_files);
	says("begin", 0);
	says("open", opened("a", O_CREAT));
	says("open again", opened("a", O_CREAT));
	says("open alone", opened("a", O_CREAT | O_EXCL));
	says("mkdir", mkdir("d", 0700));
	says("mkdir again", mkdir("d", 0700));
	says("symlink", symlink("target", "s"));
	says("through it", opened("s", O_CREAT));
	says("mknod", mkfifo("f", 0600));
	says("bind", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof at));
	says("unnamed", unnamed());
	says("rename", rename("a", "d/a"));
	says("rename over", rename("d/a", "target"));
	says("unlink", unlink("f"));
	says("rmdir", rmdir("d"));
	printf("attribute: %s\n", setxattr("target", "user.a", "x", 1, 0) ? strerror(errno) : "ok");
	unlink("s"), unlink("target"), unlink("socket"), unlink("unnamed");
	says("end", 0);
	return 0;
}
