/* open and openat: what each flag does, and the errors. */
#include "check.h"

#include <sys/stat.h>

static mode_t mode_of(const char *name)
{
	struct stat st;

	NEED(stat(name, &st) == 0);
	return st.st_mode & 07777;
}

static void creation(void)
{
	int fd;

	CHECK_ERRNO(open("new", O_RDONLY), ENOENT);
	umask(022);
	NEED((fd = open("new", O_CREAT | O_EXCL | O_WRONLY, 0666)) >= 0);
	CHECK_EQ(mode_of("new"), 0644);
	CHECK_EQ(write(fd, "hello", 5), 5);
	close(fd);
	CHECK_ERRNO(open("new", O_CREAT | O_EXCL | O_WRONLY, 0666), EEXIST);
	NEED((fd = open("new", O_CREAT | O_RDWR, 0600)) >= 0);
	CHECK_EQ(mode_of("new"), 0644);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 5);
	close(fd);
	NEED((fd = open("new", O_TRUNC | O_RDWR)) >= 0);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	close(fd);
	NEED((fd = creat("new", 0600)) >= 0);
	CHECK_ERRNO(read(fd, (char[1]){ 0 }, 1), EBADF);
	close(fd);
	NEED((fd = open("mode", O_CREAT | O_RDWR, 01777)) >= 0);
	CHECK_EQ(mode_of("mode"), 01755);
	close(fd);
	CHECK_EQ(unlink("mode"), 0);
}

static void access_modes(void)
{
	char byte = 0;
	int fd;

	NEED((fd = open("new", O_WRONLY | O_TRUNC)) >= 0);
	CHECK_EQ(write(fd, "ab", 2), 2);
	CHECK_ERRNO(read(fd, &byte, 1), EBADF);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY);
	close(fd);
	NEED((fd = open("new", O_RDONLY)) >= 0);
	CHECK_ERRNO(write(fd, "x", 1), EBADF);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(byte, 'a');
	CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
}

static void append(void)
{
	char text[8] = { 0 };
	int fd, other;

	NEED((fd = open("new", O_WRONLY | O_APPEND)) >= 0);
	NEED((other = open("new", O_WRONLY | O_APPEND)) >= 0);
	CHECK(fcntl(fd, F_GETFL) & O_APPEND);
	CHECK_EQ(write(other, "c", 1), 1);
	CHECK_EQ(write(fd, "d", 1), 1);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
	/* On Linux pwrite appends too, whatever the offset: pwrite(2), BUGS. */
	CHECK_EQ(pwrite(fd, "e", 1, 0), 1);
	CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(write(fd, "A", 1), 1);
	close(fd);
	close(other);
	NEED((fd = open("new", O_RDONLY)) >= 0);
	CHECK_EQ(read(fd, text, sizeof text), 5);
	CHECK_STR(text, "Abcde");
	close(fd);
}

static void kinds(void)
{
	int fd;

	NEED(mkdir("dir", 0755) == 0);
	NEED(symlink("new", "link") == 0);
	NEED(symlink("dir", "dirlink") == 0);
	NEED(symlink("loop", "loop") == 0);
	CHECK_ERRNO(open("dir", O_WRONLY), EISDIR);
	CHECK_ERRNO(open("dir", O_RDONLY | O_CREAT, 0644), EISDIR);
	CHECK_ERRNO(open("new", O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHECK_ERRNO(open("new/x", O_RDONLY), ENOTDIR);
	CHECK_ERRNO(open("new/", O_RDONLY), ENOTDIR);
	CHECK_ERRNO(open("link", O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK_ERRNO(open("dirlink", O_RDONLY | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
	CHECK_ERRNO(open("loop", O_RDONLY), ELOOP);
	CHECK_ERRNO(open("link", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
	CHECK_ERRNO(open("", O_RDONLY), ENOENT);
	NEED((fd = open("dirlink/../link", O_RDONLY)) >= 0);
	close(fd);
	NEED((fd = open("dirlink", O_RDONLY | O_DIRECTORY)) >= 0);
	close(fd);
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(unlink("dirlink"), 0);
	CHECK_EQ(unlink("loop"), 0);
}

/* A dangling link is where O_CREAT creates. */
static void create_through_link(void)
{
	int fd;

	NEED(symlink("dir/made", "link") == 0);
	NEED((fd = open("link", O_CREAT | O_WRONLY, 0644)) >= 0);
	close(fd);
	CHECK_EQ(access("dir/made", F_OK), 0);
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(unlink("dir/made"), 0);
}

static void at_calls(void)
{
	int dir, fd, path;

	NEED((dir = open("dir", O_RDONLY | O_DIRECTORY)) >= 0);
	NEED((fd = openat(dir, "inside", O_CREAT | O_RDWR, 0644)) >= 0);
	close(fd);
	CHECK_EQ(access("dir/inside", F_OK), 0);
	CHECK_ERRNO(openat(-1, "inside", O_RDONLY), EBADF);
	CHECK_ERRNO(openat(dir, "missing", O_RDONLY), ENOENT);
	NEED((fd = openat(AT_FDCWD, "dir/inside", O_RDONLY)) >= 0);
	CHECK_ERRNO(openat(fd, "x", O_RDONLY), ENOTDIR);
	close(fd);
	NEED((fd = openat(dir, "../new", O_RDONLY)) >= 0);
	close(fd);
	CHECK_ERRNO(read(dir, (char[8]){ 0 }, 8), EISDIR);

	NEED((path = open("dir/inside", O_PATH)) >= 0);
	CHECK_ERRNO(read(path, (char[1]){ 0 }, 1), EBADF);
	CHECK_EQ(fstat(path, &(struct stat){ 0 }), 0);
	close(path);
	CHECK_EQ(unlinkat(dir, "inside", 0), 0);
	close(dir);
}

int main(void)
{
	int fd;

	creation();
	access_modes();
	append();
	kinds();
	create_through_link();
	at_calls();

	NEED((fd = open("new", O_RDONLY | O_CLOEXEC)) >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	/* The lowest free number is the one that comes back. */
	CHECK_EQ(open("new", O_RDONLY), fd);
	close(fd);
	CHECK_EQ(rmdir("dir"), 0);
	CHECK_EQ(unlink("new"), 0);
	return check_done();
}
