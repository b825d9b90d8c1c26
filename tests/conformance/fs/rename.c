/* rename, renameat and renameat2 with its flags. */
#include "check.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#define NOREPLACE 1
#define EXCHANGE  2

static long rename2(const char *from, const char *to, long flags)
{
	return syscall(SYS_renameat2, (long)AT_FDCWD, from, (long)AT_FDCWD, to, flags);
}

static ino_t inode(const char *name)
{
	struct stat st;

	return lstat(name, &st) ? 0 : st.st_ino;
}

static void files(void)
{
	ino_t a, b;

	close(check_file("a", "a"));
	close(check_file("b", "b"));
	a = inode("a");
	CHECK_EQ(rename("a", "b"), 0);
	CHECK_EQ(inode("b"), a);
	CHECK_ERRNO(rename("a", "b"), ENOENT);
	/* Two links to one file: nothing happens. */
	NEED(link("b", "c") == 0);
	CHECK_EQ(rename("b", "c"), 0);
	CHECK_EQ(inode("b"), a);
	CHECK_EQ(unlink("c"), 0);

	close(check_file("a", "a"));
	a = inode("a"), b = inode("b");
	CHECK_ERRNO(rename2("a", "b", NOREPLACE), EEXIST);
	CHECK_EQ(rename2("a", "c", NOREPLACE), 0);
	CHECK_EQ(rename2("c", "b", EXCHANGE), 0);
	CHECK_EQ(inode("b"), a);
	CHECK_EQ(inode("c"), b);
	CHECK_ERRNO(rename2("c", "missing", EXCHANGE), ENOENT);
	CHECK_ERRNO(rename2("c", "b", NOREPLACE | EXCHANGE), EINVAL);
	CHECK_ERRNO(rename2("c", "b", 1 << 20), EINVAL);
	CHECK_EQ(unlink("c"), 0);
}

static void directories(void)
{
	int dir;

	NEED(mkdir("d", 0755) == 0 && mkdir("d/sub", 0755) == 0 && mkdir("e", 0755) == 0);
	CHECK_ERRNO(rename("b", "d"), EISDIR);
	CHECK_ERRNO(rename("d", "b"), ENOTDIR);
	CHECK_ERRNO(rename("e", "d"), ENOTEMPTY);
	CHECK_ERRNO(rename("d", "d/sub/x"), EINVAL);
	CHECK_ERRNO(rename("missing/x", "y"), ENOENT);
	CHECK_ERRNO(rename("b", "b/x"), ENOTDIR);
	CHECK_ERRNO(rename("d/.", "x"), EBUSY);
	CHECK_EQ(rename("d", "e"), 0);
	CHECK_EQ(access("e/sub", F_OK), 0);
	NEED((dir = open("e", O_RDONLY)) >= 0);
	CHECK_EQ(renameat(AT_FDCWD, "b", dir, "b"), 0);
	CHECK_EQ(renameat(dir, "b", dir, "sub/b"), 0);
	CHECK_EQ(unlinkat(dir, "sub/b", 0), 0);
	CHECK_ERRNO(renameat(-1, "b", dir, "b"), EBADF);
	close(dir);
	CHECK_EQ(rmdir("e/sub"), 0);
	CHECK_EQ(rmdir("e"), 0);
}

int main(void)
{
	files();
	/* A link is renamed, not what it names. */
	NEED(symlink("b", "link") == 0);
	CHECK_EQ(rename("link", "other"), 0);
	CHECK_EQ(access("b", F_OK), 0);
	CHECK_EQ(unlink("other"), 0);
	directories();
	return check_done();
}
