/* Absolute paths, absolute links, and `..` at and through them, all inside the directory the
 * program starts in. */
#include "check.h"

#include <limits.h>
#include <sys/stat.h>

static char here[PATH_MAX];

static const char *at(const char *name)
{
	static char paths[4][2 * PATH_MAX];
	static int next;

	next = (next + 1) % 4;
	snprintf(paths[next], sizeof paths[next], "%s/%s", strcmp(here, "/") ? here : "", name);
	return paths[next];
}

static ino_t inode(const char *name)
{
	struct stat st;

	return stat(name, &st) ? 0 : st.st_ino;
}

int main(void)
{
	struct stat root, above;
	char text[PATH_MAX];
	int fd, dir;

	NEED(getcwd(here, sizeof here));
	NEED(stat("/", &root) == 0 && stat("/../../..", &above) == 0);
	CHECK_EQ(root.st_ino, above.st_ino);
	CHECK_EQ(root.st_dev, above.st_dev);

	close(check_file("f", "text"));
	NEED(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0);
	NEED(symlink(at("f"), "abs") == 0 && symlink(at("d/e"), "absdir") == 0);
	CHECK_EQ(inode("abs"), inode("f"));
	CHECK_EQ(inode(at("f")), inode("f"));
	/* `..` after a link is the parent of what it names. */
	CHECK_EQ(inode("absdir/.."), inode("d"));
	CHECK_EQ(inode("absdir/../../f"), inode("f"));
	CHECK_EQ(inode(at("absdir/../../d/e/.././../abs")), inode("f"));
	CHECK_EQ(readlink("abs", text, sizeof text), strlen(at("f")));
	NEED((fd = open("abs", O_RDWR)) >= 0);
	close(fd);
	CHECK_ERRNO(open("abs", O_RDWR | O_NOFOLLOW), ELOOP);

	/* Relative to a descriptor, an absolute path does not care. */
	NEED((dir = open("d", O_RDONLY | O_DIRECTORY)) >= 0);
	NEED((fd = openat(dir, at("f"), O_RDONLY)) >= 0);
	close(fd);
	NEED((fd = openat(-1, at("f"), O_RDONLY)) >= 0);
	close(fd);
	NEED((fd = openat(dir, "e/../../abs", O_RDONLY)) >= 0);
	close(fd);
	/* Creating, removing, renaming through links in the middle. */
	NEED((fd = open("absdir/new", O_CREAT | O_EXCL | O_RDWR, 0600)) >= 0);
	close(fd);
	CHECK_EQ(access("d/e/new", F_OK), 0);
	CHECK_EQ(rename("absdir/new", at("absdir/../moved")), 0);
	CHECK_EQ(access("d/moved", F_OK), 0);
	CHECK_EQ(link("absdir/../moved", "absdir/linked"), 0);
	CHECK_EQ(unlink("absdir/linked"), 0);
	CHECK_EQ(mkdir("absdir/sub", 0755), 0);
	CHECK_EQ(rmdir(at("d/e/sub")), 0);
	CHECK_EQ(symlink("x", "absdir/s"), 0);
	CHECK_EQ(readlink("absdir/s", text, sizeof text), 1);
	CHECK_EQ(unlinkat(dir, "e/s", 0), 0);
	CHECK_EQ(unlinkat(dir, "e/../moved", 0), 0);
	CHECK_EQ(truncate("abs", 2), 0);
	CHECK_EQ(chmod("abs", 0600), 0);

	/* The descriptor follows its directory when that is renamed. */
	CHECK_EQ(rename("d", "renamed"), 0);
	NEED((fd = openat(dir, "../f", O_RDONLY)) >= 0);
	close(fd);
	CHECK_EQ(faccessat(dir, "e", F_OK, 0), 0);
	CHECK_ERRNO(open("absdir/x", O_RDONLY), ENOENT);
	NEED(fchdir(dir) == 0 && getcwd(text, sizeof text));
	CHECK_STR(text, at("renamed"));
	CHECK_EQ(access("../f", F_OK), 0);
	CHECK_EQ(chdir(here), 0);
	close(dir);
	CHECK_EQ(unlink("abs"), 0);
	CHECK_EQ(unlink("absdir"), 0);
	CHECK_EQ(unlink("f"), 0);
	CHECK_EQ(rmdir("renamed/e"), 0);
	CHECK_EQ(rmdir("renamed"), 0);
	return check_done();
}
