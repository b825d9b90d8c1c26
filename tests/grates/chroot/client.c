/* Looks around in a root, and tries to look out of it. Prints how each attempt ended; Linux's
 * chroot(2) prints the same. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TRY(call) (errno = 0, report(#call, (long)(call)))

static void report(const char *what, long r)
{
	printf("%s: %d\n", what, r == -1 ? errno : 0);
}

static long contents(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	text[read(fd, text, 63) > 0 ? strcspn(text, "\n") : 0] = 0;
	close(fd);
	printf("[%s] ", text);
	return 0;
}

static long opened(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags, 0600);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static long working(void)
{
	char path[4096];

	if (!getcwd(path, sizeof path))
		return -1;
	printf("[%s] ", path);
	return 0;
}

static long same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (stat(a, &x) || stat(b, &y))
		return -1;
	printf("[%s] ", x.st_dev == y.st_dev && x.st_ino == y.st_ino ? "same" : "different");
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char **)a, *(char **)b);
}

static long list(const char *path)
{
	char *names[64];
	int count = 0;
	DIR *d = opendir(path);
	struct dirent *e;

	if (!d)
		return -1;
	while ((e = readdir(d)) && count < 64)
		names[count++] = strdup(e->d_name);
	closedir(d);
	qsort(names, count, sizeof *names, by_name);
	for (int i = 0; i < count; i++)
		printf("%s ", names[i]);
	return 0;
}

static long link_text(const char *path)
{
	char text[256];
	ssize_t n = readlink(path, text, sizeof text - 1);

	if (n < 0)
		return -1;
	text[n] = 0;
	printf("[%s] ", text);
	return 0;
}

static long talks(const char *at, const char *to, int kind)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX }, b = a;
	int s = socket(AF_UNIX, kind, 0), c = socket(AF_UNIX, kind, 0), r;

	strcpy(a.sun_path, at);
	strcpy(b.sun_path, to);
	r = bind(s, (struct sockaddr *)&a, sizeof a);
	if (!r && kind == SOCK_STREAM && !(r = listen(s, 1)))
		r = connect(c, (struct sockaddr *)&b, sizeof b);
	else if (!r)
		r = sendto(c, "x", 1, 0, (struct sockaddr *)&b, sizeof b) == 1 ? 0 : -1;
	close(s);
	close(c);
	return r;
}

static long reaches(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strcpy(a.sun_path, path);
	r = connect(s, (struct sockaddr *)&a, sizeof a);
	close(s);
	return r;
}

int main(void)
{
	char longest[4200], name[64];
	struct statfs fs;
	struct stat st;
	int dir, sub;

	TRY(working());
	TRY(list("/"));
	TRY(list("."));
	TRY(list("/d/../.."));
	TRY(contents("/f"));
	TRY(contents("../../../../f"));
	TRY(contents("d/../../f"));
	TRY(contents("secret"));
	TRY(contents("/secret"));
	TRY(contents("../secret"));
	TRY(same_file("/", "/.."));
	TRY(same_file("/", "/d/../../.."));
	TRY(contents("absolute"));
	TRY(contents("out"));
	TRY(contents("out-relative"));
	TRY(contents("into/f"));
	TRY(contents("loop"));
	TRY(link_text("absolute"));
	TRY(link_text("/out-relative"));
	TRY(lstat("out", &st));
	TRY(stat("out", &st));
	TRY(access("out", F_OK));
	TRY(statfs("d", &fs));
	TRY(chdir("d"));
	TRY(working());
	TRY(contents("g"));
	TRY(contents("../f"));
	TRY(contents("../../../secret"));
	TRY(chdir("../.."));
	TRY(working());
	TRY(chdir("out-directory"));
	TRY(working());
	TRY(chdir("/into"));
	TRY(working());
	TRY(chdir("/"));

	TRY(opened(AT_FDCWD, "made", O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "out", O_WRONLY | O_CREAT));
	TRY(opened(AT_FDCWD, "/../made-up", O_WRONLY | O_CREAT));
	TRY(unlink("../../made-up"));
	TRY(rename("made", "../d/moved"));
	TRY(link("d/moved", "/../linked"));
	TRY(unlink("linked"));
	TRY(unlink("d/moved"));
	TRY(mkdir("/..", 0700));
	TRY(mkdir("/", 0700));
	TRY(rmdir("/.."));
	TRY(rmdir("d/.."));
	TRY(mkdir("n", 0700));
	TRY(symlink("/secret", "n/link"));
	TRY(contents("n/link"));
	TRY(unlink("n/link"));
	TRY(symlink("../../../../../secret", "n/link"));
	TRY(contents("n/link"));
	TRY(truncate("n/link", 0));
	TRY(chmod("n/link", 0777));
	TRY(setxattr("n/link", "user.x", "y", 1, 0));
	TRY(unlink("n/link"));
	TRY(rmdir("n"));

	dir = open("/", O_RDONLY | O_DIRECTORY);
	sub = open("/d", O_PATH | O_DIRECTORY);
	TRY(opened(dir, "../secret", O_RDONLY));
	TRY(opened(sub, "../../secret", O_RDONLY));
	TRY(opened(sub, "../f", O_RDONLY));
	TRY(opened(sub, "g", O_RDONLY));
	TRY(opened(sub, "", O_RDONLY));
	TRY(fstatat(sub, "", &st, AT_EMPTY_PATH));
	TRY(fstatat(sub, "..", &st, 0));
	TRY(fstatat(dir, "..", &st, 0));
	TRY(fchdir(sub));
	TRY(working());
	TRY(contents("../../secret"));
	TRY(fchdir(dir));
	TRY(opened(99, "f", O_RDONLY));
	TRY(contents("/proc/self/status"));
	TRY(contents("/dev/null"));
	snprintf(name, sizeof name, "/proc/self/fd/%d", sub);
	TRY(opened(AT_FDCWD, name, O_RDONLY));

	/* A directory that is moved while one is in it. */
	TRY(mkdir("deep", 0700));
	TRY(mkdir("deep/er", 0700));
	TRY(chdir("deep/er"));
	TRY(rename("/deep/er", "/er"));
	TRY(working());
	TRY(contents("../f"));
	TRY(contents("../../secret"));
	TRY(rmdir("/er"));
	TRY(contents("../f"));
	TRY(chdir("/"));
	TRY(rmdir("deep"));

	TRY(talks("sock", "/sock", SOCK_STREAM));
	TRY(reaches("sock"));
	TRY(unlink("sock"));
	TRY(talks("/d/sock", "../../d/sock", SOCK_DGRAM));
	TRY(unlink("d/sock"));
	TRY(reaches("/outer"));
	TRY(reaches("../outer"));
	TRY(reaches("out"));
	TRY(reaches("f"));
	sub = inotify_init();
	TRY(inotify_add_watch(sub, "/../secret", IN_MODIFY));
	TRY(inotify_add_watch(sub, "d", IN_MODIFY) > 0 ? 0 : -1);

	memset(longest, '/', sizeof longest);
	longest[sizeof longest - 1] = 0;
	TRY(stat(longest, &st));
	longest[4095] = 0;
	TRY(stat(longest, &st));
	for (int i = 0; i + 3 < 4090; i += 3)
		memcpy(longest + i, "../", 3);
	strcpy(longest + 4080, "f");
	TRY(contents(longest));
	strcpy(longest + 4080, "secret");
	TRY(contents(longest));
	TRY(stat("", &st));
	TRY(stat(NULL, &st));
	return 0;
}
