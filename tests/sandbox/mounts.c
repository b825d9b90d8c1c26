/* mounts: tries what mounts mean, and prints how each went. Where the host makes them it is Linux
 * that answers. The world:
     /a      can be changed; in it kept, in/d, q/r (below: mount)
     /a/sub  another directory, can be changed; in it file, deep
     /a/q/r  the same directory as /a/sub
     /in     what is /a/in
     /b      cannot be changed; in it file, dir, fifo
     /one    a file that can be changed; /fixed one that cannot */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *outcome(long r)
{
	return r < 0 ? strerror(errno) : "ok";
}

#define TRY(call) printf("%s: %s\n", #call, outcome(call))

/* Opens and closes. */
static int opened(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags, 0644);

	return fd < 0 ? -1 : close(fd);
}

static int resolved(int dir, const char *path, unsigned long long resolve)
{
	struct open_how how = { .flags = O_PATH, .resolve = resolve };
	int fd = (int)syscall(SYS_openat2, (long)dir, path, &how, (long)sizeof how);

	return fd < 0 ? -1 : close(fd);
}

/* Whether two paths lead to the same file. */
static const char *same(const char *one, const char *other)
{
	struct stat a, b;

	if (stat(one, &a) || stat(other, &b))
		return strerror(errno);
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino ? "the same" : "different";
}

#define SAME(one, other) printf("%s and %s: %s\n", one, other, same(one, other))

static void link_text(const char *what, const char *path)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof text);

	printf("%s: %s\n", what, n < 0 ? strerror(errno) : (text[n] = 0, text));
}

static void name_of(const char *what, int fd)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	link_text(what, path);
}

static void where(void)
{
	char cwd[PATH_MAX];

	printf("in %s\n", getcwd(cwd, sizeof cwd) ? cwd : strerror(errno));
}

/* The same open file, as a message brings it. */
static int sent(int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	int ends[2], got = -1;

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || sendmsg(ends[0], &message, 0) != 1)
		return -1;
	message.msg_controllen = sizeof room;
	if (recvmsg(ends[1], &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
	close(ends[0]);
	close(ends[1]);
	return got;
}

/* Opens what is open, by its name in /proc. */
static void again(const char *what, int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	printf("%s: %s\n", what, outcome(opened(AT_FDCWD, path, flags)));
}

static int by_name(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static void list(const char *path)
{
	char *names[64];
	size_t count = 0;
	DIR *dir = opendir(path);

	for (struct dirent *e; dir && (e = readdir(dir)) && count < 64;)
		names[count++] = strdup(e->d_name);
	qsort(names, count, sizeof *names, by_name);
	printf("%s:", path);
	for (size_t i = 0; i < count; i++)
		printf(" %s", names[i]);
	printf("\n");
	if (dir)
		closedir(dir);
}

static void mounted(const char *file)
{
	char line[4096], *place, *rest;
	FILE *f = fopen(file, "r");

	while (f && fgets(line, sizeof line, f)) {
		if (strcmp(file, "/proc/self/mountinfo") == 0) {
			strtok(line, " ");
			for (int i = 0; i < 3; i++)
				strtok(NULL, " ");
			place = strtok(NULL, " ");
			rest = strtok(NULL, " ");
		} else {
			strtok(line, " ");
			place = strtok(NULL, " ");
			strtok(NULL, " ");
			rest = strtok(NULL, " ");
		}
		if (place && rest &&
		    (!strncmp(place, "/a", 2) || !strcmp(place, "/b") || !strcmp(place, "/one") ||
			!strcmp(place, "/fixed")))
			printf("%s %s %.2s\n", file, place, rest);
	}
	if (f)
		fclose(f);
}

static int flags_of(const char *path)
{
	struct statvfs s;

	return statvfs(path, &s) ? -1 : (int)(s.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV));
}

static int bound(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strcpy(to.sun_path, path);
	r = bind(fd, (struct sockaddr *)&to, sizeof to);
	if (!r)
		r = listen(fd, 1);
	if (r)
		close(fd);
	return r ? -1 : fd;
}

static int connected(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strcpy(to.sun_path, path);
	r = connect(fd, (struct sockaddr *)&to, sizeof to);
	close(fd);
	return r;
}

static void ways(void)
{
	int dir = open("/a/sub", O_RDONLY | O_DIRECTORY);

	SAME("/a/sub/..", "/a");
	SAME("/a/sub/deep/../..", "/a");
	SAME("/a/../../b/../a/./sub//deep/../file", "/a/sub/file");
	SAME("/a/q/r/file", "/a/sub/file");
	SAME("/a/in", "/in");
	SAME("/in/..", "/");
	SAME("/a/..", "/");
	TRY(opened(dir, "../kept", O_RDONLY));
	TRY(opened(dir, "../../b/file", O_RDONLY));
	TRY(opened(dir, "../../../../b/file", O_RDONLY));
	TRY(chdir("/a/sub/deep"));
	where();
	TRY(opened(AT_FDCWD, "../../kept", O_RDONLY));
	TRY(chdir(".."));
	where();
	TRY(chdir(".."));
	where();
	TRY(fchdir(dir));
	where();
	link_text("cwd", "/proc/self/cwd");
	TRY(symlink("/a/kept", "/a/absolute"));
	TRY(opened(AT_FDCWD, "/a/absolute", O_RDONLY));
	TRY(symlink("../../../b/file", "/a/up"));
	SAME("/a/up", "/b/file");
	TRY(opened(AT_FDCWD, "/a/up", O_RDONLY | O_NOFOLLOW));
	TRY(symlink("/dev/null", "/a/nothing"));
	TRY(opened(AT_FDCWD, "/a/nothing", O_WRONLY));
	TRY(symlink("/proc/self/cwd/deep", "/a/here"));
	SAME("/a/here", "/a/sub/deep");
	TRY(symlink("/a/made", "/a/dangling"));
	TRY(opened(AT_FDCWD, "/a/dangling", O_WRONLY | O_CREAT | O_EXCL));
	TRY(opened(AT_FDCWD, "/a/dangling", O_WRONLY | O_CREAT));
	TRY(access("/a/made", F_OK));
	TRY(symlink("loop", "/a/loop"));
	TRY(opened(AT_FDCWD, "/a/loop", O_RDONLY));
	TRY(opened(AT_FDCWD, "/a/kept/", O_RDONLY));
	TRY(opened(AT_FDCWD, "/a/kept/..", O_RDONLY));
	TRY(opened(AT_FDCWD, "/one", O_RDWR));
	TRY(opened(AT_FDCWD, "/one/", O_RDONLY));
	TRY(opened(AT_FDCWD, "/one/..", O_RDONLY));
	TRY(opened(AT_FDCWD, "/one", O_RDONLY | O_DIRECTORY));
	TRY(opened(AT_FDCWD, "/one", O_RDWR | O_CREAT));
	TRY(opened(AT_FDCWD, "/one", O_RDWR | O_CREAT | O_EXCL));
	TRY(opened(AT_FDCWD, "", O_RDONLY));
	TRY(opened(AT_FDCWD, "/a", O_WRONLY));
	TRY(opened(AT_FDCWD, "/nowhere/../a/kept", O_RDONLY));
	close(dir);
}

static void scopes(void)
{
	int dir = open("/a", O_PATH | O_DIRECTORY);

	TRY(resolved(dir, "sub/file", RESOLVE_BENEATH));
	TRY(resolved(dir, "sub/../kept", RESOLVE_BENEATH));
	TRY(resolved(dir, "../b/file", RESOLVE_BENEATH));
	TRY(resolved(dir, "/a/kept", RESOLVE_BENEATH));
	TRY(resolved(dir, "absolute", RESOLVE_BENEATH));
	TRY(resolved(dir, "/sub/file", RESOLVE_IN_ROOT));
	TRY(resolved(dir, "../../sub/file", RESOLVE_IN_ROOT));
	TRY(resolved(dir, "up", RESOLVE_IN_ROOT));
	TRY(resolved(dir, "sub/file", RESOLVE_NO_XDEV));
	TRY(resolved(dir, "kept", RESOLVE_NO_XDEV));
	TRY(resolved(dir, "..", RESOLVE_NO_XDEV));
	TRY(resolved(dir, "/b/file", RESOLVE_NO_XDEV));
	TRY(resolved(dir, "absolute", RESOLVE_NO_SYMLINKS));
	TRY(resolved(dir, "sub/file", RESOLVE_NO_SYMLINKS));
	close(dir);
}

static void names(void)
{
	int fd, dir;
	struct stat s;

	TRY(mkdir("/a/new/", 0755));
	TRY(mkdir("/a/sub", 0755));
	TRY(mkdir("/a/sub/made", 0755));
	TRY(rename("/a/kept", "/a/sub/kept"));
	TRY(rename("/a/kept", "/b/kept"));
	TRY(rename("/b/file", "/a/file"));
	TRY(link("/a/kept", "/a/sub/kept"));
	TRY(link("/b/file", "/a/file"));
	TRY(link("/a/sub/file", "/a/q/r/linked"));
	TRY(link("/a/kept", "/a/linked"));
	TRY(stat("/a/linked", &s));
	printf("links %d\n", (int)s.st_nlink);
	TRY(rename("/a/sub", "/a/other"));
	TRY(rename("/a/new", "/a/sub"));
	TRY(renameat2(AT_FDCWD, "/a/new", AT_FDCWD, "/a/sub", RENAME_EXCHANGE));
	TRY(rmdir("/a/sub"));
	TRY(rmdir("/a/sub/"));
	TRY(unlink("/one"));
	TRY(rmdir("/a"));
	TRY(rename("/a", "/c"));
	TRY(rmdir("/a/new/"));
	TRY(rename("/a/q", "/a/moved"));
	SAME("/a/moved/r/file", "/a/sub/file");
	TRY(chdir("/a/moved/r/deep"));
	where();
	TRY(rename("/a/moved", "/a/q"));
	where();
	TRY(chdir("/"));
	fd = open("/a/sub/gone", O_RDWR | O_CREAT, 0644);
	name_of("open", fd);
	TRY(unlink("/a/sub/gone"));
	name_of("removed", fd);
	TRY(linkat(fd, "", AT_FDCWD, "/a/gone", AT_EMPTY_PATH));
	close(fd);
	fd = open("/one", O_RDONLY);
	name_of("file", fd);
	close(fd);
	dir = open("/a/sub", O_PATH);
	name_of("directory", dir);
	TRY(opened(dir, "file", O_RDONLY));
	close(dir);
	fd = open("/a", O_TMPFILE | O_RDWR, 0644);
	if (fd >= 0) {
		char path[64];

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		TRY(linkat(AT_FDCWD, path, AT_FDCWD, "/a/sub/named", AT_SYMLINK_FOLLOW));
		TRY(linkat(AT_FDCWD, path, AT_FDCWD, "/a/named", AT_SYMLINK_FOLLOW));
		close(fd);
	}
	list("/a");
	list("/a/sub");
}

static void left(void)
{
	TRY(chdir("/in/d"));
	TRY(rename("/a/in/d", "/a/d"));
	TRY(opened(AT_FDCWD, "..", O_RDONLY));
	TRY(opened(AT_FDCWD, "../../secret", O_RDONLY));
	TRY(opened(AT_FDCWD, "../..", O_PATH));
	TRY(opened(AT_FDCWD, ".", O_RDONLY));
	TRY(chdir(".."));
	TRY(rename("/a/d", "/a/in/d"));
	TRY(opened(AT_FDCWD, "..", O_RDONLY));
	where();
	TRY(chdir("/"));
}

static void read_only(void)
{
	struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	int fd = open("/b/file", O_RDONLY), received, dir;

	TRY(opened(AT_FDCWD, "/b/file", O_RDONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "/b/file", O_WRONLY));
	TRY(opened(AT_FDCWD, "/b/file", O_RDONLY | O_TRUNC));
	TRY(opened(AT_FDCWD, "/b/file", O_WRONLY | O_CREAT | O_EXCL));
	TRY(opened(AT_FDCWD, "/b/new", O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "/b/new", O_WRONLY));
	TRY(opened(AT_FDCWD, "/b/dir", O_WRONLY));
	TRY(opened(AT_FDCWD, "/b", O_TMPFILE | O_RDWR));
	TRY(opened(AT_FDCWD, "/b/../a", O_TMPFILE | O_RDWR));
	TRY(opened(AT_FDCWD, "/b/fifo", O_RDWR | O_NONBLOCK));
	TRY(opened(AT_FDCWD, "/fixed", O_RDWR));
	TRY(opened(AT_FDCWD, "/fixed", O_RDONLY));
	again("by its descriptor", fd, O_RDONLY);
	again("by its descriptor, to write", fd, O_RDWR);
	TRY(opened(AT_FDCWD, "/new", O_WRONLY | O_CREAT));
	TRY(mkdir("/b/new", 0755));
	TRY(mkdir("/b/dir", 0755));
	TRY(rmdir("/b/dir"));
	TRY(unlink("/b/file"));
	TRY(unlink("/b/missing"));
	TRY(rename("/b/file", "/b/other"));
	TRY(link("/b/file", "/b/linked"));
	TRY(symlink("x", "/b/symlink"));
	TRY(mkfifo("/b/pipe", 0600));
	TRY(bound("/b/socket"));
	TRY(chmod("/b/file", 0600));
	TRY(chmod("/b/missing", 0600));
	TRY(fchmod(fd, 0600));
	TRY(chown("/b/file", getuid(), getgid()));
	TRY(fchown(fd, getuid(), getgid()));
	TRY(utimensat(AT_FDCWD, "/b/file", times, 0));
	TRY(futimens(fd, times));
	TRY(truncate("/b/file", 0));
	TRY(truncate("/b/missing", 0));
	TRY(setxattr("/b/file", "user.a", "x", 1, 0));
	TRY(fsetxattr(fd, "user.a", "x", 1, 0));
	received = sent(fd);
	TRY(fchmod(received, 0600));
	TRY(fchown(received, getuid(), getgid()));
	TRY(fchownat(received, "", getuid(), getgid(), AT_EMPTY_PATH));
	TRY(futimens(received, times));
	close(received);
	dir = open("/b/dir", O_RDONLY | O_DIRECTORY);
	again("a file without a name", dir, O_TMPFILE | O_RDWR);
	received = sent(dir);
	TRY(fchmod(received, 0700));
	close(received);
	close(dir);
	dir = open("/a/kept", O_RDONLY);
	received = sent(dir);
	TRY(fchmod(received, 0644));
	close(received);
	close(dir);
	received = sent(memfd_create("memory", 0));
	TRY(fchmod(received, 0600));
	close(received);
	TRY(access("/b/file", R_OK));
	TRY(access("/b/file", W_OK));
	TRY(access("/b/fifo", W_OK));
	TRY(access("/b/dir", W_OK));
	TRY(access("/a/kept", W_OK));
	printf("flags %d %d %d %d\n", flags_of("/a"), flags_of("/a/sub"), flags_of("/b"), flags_of("/"));
	close(fd);
}

static void others(void)
{
	char events[4096];
	int listener, watcher;

	mounted("/proc/self/mounts");
	mounted("/proc/self/mountinfo");
	TRY(chdir("/a/sub"));
	listener = bound("../socket");
	printf("bound %s\n", listener < 0 ? strerror(errno) : "ok");
	TRY(connected("/a/socket"));
	TRY(connected("../socket"));
	watcher = inotify_init1(IN_NONBLOCK);
	TRY(inotify_add_watch(watcher, "/a/q/r", IN_CREATE));
	TRY(opened(AT_FDCWD, "watched", O_WRONLY | O_CREAT));
	if (read(watcher, events, sizeof events) > 0)
		printf("event %s\n", ((struct inotify_event *)events)->name);
	TRY(chdir("/"));
}

int main(void)
{
	ways();
	scopes();
	names();
	left();
	read_only();
	others();
	return 7;
}
