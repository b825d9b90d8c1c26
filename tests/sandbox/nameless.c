/*
 * nameless DIRECTORY: what may be done to open files that have no name, in an empty directory: one
 * that was removed, one that never had any, and a directory. Prints the number of the error that
 * each call gave, or 0. And what /proc/self/cwd leads to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TRY(call) \
	do { \
		errno = 0; \
		int r_ = (call) < 0; \
		printf("%s: %d\n", #call, r_ ? errno : 0); \
	} while (0)

static void change(int fd)
{
	const struct timespec times[2] = { { 1000000000, 5 }, { 1100000000, 7 } };
	char path[64], link[4200];
	struct stat st;
	ssize_t n;
	int again;

	TRY(pwrite(fd, "some bytes", 10, 0));
	TRY(ftruncate(fd, 4));
	TRY(ftruncate(fd, 9000));
	TRY(fchmod(fd, 0600));
	TRY(fchown(fd, getuid(), getgid()));
	TRY(posix_fallocate(fd, 0, 4096) ? -1 : 0);
	TRY(futimens(fd, times));
	if (!fstat(fd, &st))
		printf("%ld links, %ld bytes, mode %o, time %ld\n", (long)st.st_nlink, (long)st.st_size, st.st_mode,
		    (long)st.st_mtime);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof link);
	printf("deleted: %d\n", n > 10 && !memcmp(link + n - 10, " (deleted)", 10));
	TRY(again = open(path, O_RDWR));
	TRY(pwrite(again, "again", 5, 0));
	TRY(ftruncate(again, 5));
	TRY(truncate(path, 3));
	TRY(chmod(path, 0640));
	TRY(close(again));
}

static void working_directory(void)
{
	struct stat one, other;
	int fd;

	TRY(mkdir("here", 0755));
	TRY(chdir("here"));
	TRY(fd = open("/proc/self/cwd/file", O_WRONLY | O_CREAT | O_EXCL, 0644));
	TRY(close(fd));
	TRY(stat("file", &one));
	TRY(stat("/proc/self/cwd/file", &other));
	printf("one file: %d\n", one.st_ino == other.st_ino);
	TRY(rename("/proc/self/cwd/file", "/proc/self/cwd/../moved"));
	TRY(unlink("../moved"));
	TRY(chdir(".."));
	TRY(rmdir("here"));
}

/* A stream takes no address, whatever it is. */
static void addresses(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "nobody" };
	struct msghdr message = {
		.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &(struct iovec){ "x", 1 }, .msg_iovlen = 1
	};
	int pair[2], alone = socket(AF_UNIX, SOCK_STREAM, 0);

	TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	TRY(sendmsg(pair[0], &message, 0));
	TRY(sendto(pair[0], "x", 1, 0, (void *)&to, sizeof to));
	TRY(sendmsg(alone, &message, 0));
	TRY(sendto(alone, "x", 1, 0, (void *)&to, sizeof to));
}

int main(int argc, char **argv)
{
	char path[64];
	int fd, old;

	if (argc != 2 || chdir(argv[1]))
		return 2;
	umask(022);
	TRY(fd = open("made", O_RDWR | O_CREAT | O_EXCL, 0644));
	TRY(unlink("made"));
	change(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	TRY(linkat(AT_FDCWD, path, AT_FDCWD, "revived", AT_SYMLINK_FOLLOW));
	if ((old = open("old", O_RDWR)) >= 0) {
		unlink("old");
		change(old);
	}
	TRY(fd = open(".", O_RDWR | O_TMPFILE, 0644));
	change(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	TRY(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	TRY(truncate("named", 7));
	TRY(unlink("named"));
	TRY(mkdir("directory", 0755));
	TRY(fd = open("directory", O_RDONLY | O_DIRECTORY));
	TRY(rmdir("directory"));
	TRY(fchmod(fd, 0700));
	TRY(openat(fd, "x", O_CREAT | O_WRONLY, 0644));
	TRY(mkdirat(fd, "x", 0755));
	working_directory();
	addresses();
	return 0;
}
