/* ftw, scandir, fdopendir: walking directories as programs do. */
#include "check.h"

#include <ftw.h>
#include <sys/stat.h>

static int files, directories, links;

static int visit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)path;
	(void)st;
	CHECK(at->level >= 0);
	files += kind == FTW_F;
	directories += kind == FTW_DP;
	links += kind == FTW_SL;
	return 0;
}

static int erase(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int wanted(const struct dirent *entry)
{
	return entry->d_name[0] == 'f';
}

int main(void)
{
	struct dirent **names;
	DIR *dir = NULL;
	int count, fd;

	NEED(mkdir("t", 0755) == 0 && mkdir("t/a", 0755) == 0 && mkdir("t/a/b", 0755) == 0);
	close(check_file("t/f2", "x"));
	close(check_file("t/f1", "x"));
	close(check_file("t/a/b/f3", "x"));
	NEED(symlink("a", "t/link") == 0);
	CHECK_EQ(nftw("t", visit, 10, FTW_DEPTH | FTW_PHYS), 0);
	CHECK_EQ(files, 3);
	CHECK_EQ(directories, 3);
	CHECK_EQ(links, 1);
	NEED((count = scandir("t", &names, wanted, alphasort)) == 2);
	CHECK_STR(names[0]->d_name, "f1");
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	NEED((fd = open("t/a", O_RDONLY | O_DIRECTORY)) >= 0 && (dir = fdopendir(fd)));
	CHECK_EQ(dirfd(dir), fd);
	CHECK_EQ(closedir(dir), 0);
	CHECK_ERRNO(fcntl(fd, F_GETFD), EBADF);
	CHECK_EQ(nftw("t", erase, 10, FTW_DEPTH | FTW_PHYS), 0);
	CHECK_ERRNO(access("t", F_OK), ENOENT);
	return check_done();
}
