/* link, symlink, readlink and their *at forms. */
#include "check.h"

#include <limits.h>
#include <sys/stat.h>

static void hard(void)
{
	struct stat a, b;
	int dir;

	CHECK_EQ(link("f", "g"), 0);
	NEED(stat("f", &a) == 0 && stat("g", &b) == 0);
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(a.st_nlink, 2);
	CHECK_ERRNO(link("f", "g"), EEXIST);
	CHECK_ERRNO(link("missing", "h"), ENOENT);
	CHECK_ERRNO(link("d", "h"), EPERM);
	CHECK_ERRNO(link("f", "missing/h"), ENOENT);
	NEED(symlink("f", "s") == 0);
	/* link(2) does not follow; linkat(2) does if told to. */
	CHECK_EQ(link("s", "t"), 0);
	NEED(lstat("t", &a) == 0);
	CHECK(S_ISLNK(a.st_mode));
	CHECK_EQ(unlink("t"), 0);
	CHECK_EQ(linkat(AT_FDCWD, "s", AT_FDCWD, "t", AT_SYMLINK_FOLLOW), 0);
	NEED(lstat("t", &a) == 0);
	CHECK(S_ISREG(a.st_mode));
	CHECK_EQ(unlink("t"), 0);
	NEED((dir = open("d", O_RDONLY)) >= 0);
	CHECK_EQ(linkat(AT_FDCWD, "f", dir, "in", 0), 0);
	CHECK_EQ(unlinkat(dir, "in", 0), 0);
	CHECK_ERRNO(linkat(-1, "f", dir, "in", 0), EBADF);
	CHECK_ERRNO(linkat(AT_FDCWD, "f", dir, "in", 1 << 30), EINVAL);
	close(dir);
	CHECK_EQ(unlink("g"), 0);
	CHECK_EQ(unlink("s"), 0);
}

static void symbolic(void)
{
	char text[PATH_MAX], longest[PATH_MAX + 1];
	int dir;

	CHECK_EQ(symlink("../any thing/at/all", "s"), 0);
	memset(text, '#', sizeof text);
	CHECK_EQ(readlink("s", text, sizeof text), 19);
	CHECK_EQ(memcmp(text, "../any thing/at/all#", 20), 0);
	CHECK_EQ(readlink("s", text, 4), 4);
	CHECK_EQ(memcmp(text, "../a", 4), 0);
	CHECK_ERRNO(symlink("x", "s"), EEXIST);
	CHECK_ERRNO(symlink("", "t"), ENOENT);
	CHECK_ERRNO(symlink("x", "missing/t"), ENOENT);
	CHECK_ERRNO(readlink("f", text, sizeof text), EINVAL);
	CHECK_ERRNO(readlink("missing", text, sizeof text), ENOENT);
	memset(longest, 'x', PATH_MAX);
	longest[PATH_MAX] = 0;
	CHECK_ERRNO(symlink(longest, "t"), ENAMETOOLONG);

	NEED((dir = open("d", O_RDONLY)) >= 0);
	CHECK_EQ(symlinkat("../f", dir, "up"), 0);
	CHECK_EQ(access("d/up", F_OK), 0);
	CHECK_EQ(readlinkat(dir, "up", text, sizeof text), 4);
	CHECK_ERRNO(readlinkat(dir, "", text, sizeof text), ENOENT);
	CHECK_EQ(unlinkat(dir, "up", 0), 0);
	close(dir);
	CHECK_EQ(unlink("s"), 0);
}

/* 40 links in a row resolve, 41 do not: path_resolution(7). */
static void chains(void)
{
	char from[8], to[8];
	struct stat st;

	for (int i = 0; i <= 40; i++) {
		snprintf(from, sizeof from, "l%d", i);
		snprintf(to, sizeof to, "l%d", i + 1);
		NEED(symlink(i == 40 ? "f" : to, from) == 0);
	}
	CHECK_EQ(stat("l1", &st), 0);
	CHECK_ERRNO(stat("l0", &st), ELOOP);
	for (int i = 0; i <= 40; i++) {
		snprintf(from, sizeof from, "l%d", i);
		CHECK_EQ(unlink(from), 0);
	}
}

int main(void)
{
	close(check_file("f", "x"));
	NEED(mkdir("d", 0755) == 0);
	hard();
	symbolic();
	chains();
	CHECK_EQ(rmdir("d"), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
