/* Tests what a view shows. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../check.h"

static int holds(const char *path, const char *wanted)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return 0;
	if (read(fd, text, 63) < 0)
		text[0] = 0;
	close(fd);
	return !strcmp(text, wanted);
}

static int lists(const char *path, const char *name)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int found = 0;

	while (d && (e = readdir(d)))
		found |= !strcmp(e->d_name, name);
	if (d)
		closedir(d);
	return found;
}

int main(int argc, char **argv)
{
	char text[256];
	struct stat st, to;
	int dir, moved;

	IS(argc, 2);
	IS(chdir(argv[1]), 0);

	/* Bound: in both places. */
	IS(holds("at/f", "f of what\n"), 1);
	IS(holds("what/f", "f of what\n"), 1);
	IS(holds("at/d/../f", "f of what\n"), 1);
	IS(holds("at/../top", "top\n"), 1);
	IS(holds("at/up/top", "top\n"), 1);
	IS(holds("file", "f of what\n"), 1);
	IS(stat("at", &st) || stat("what", &to), 0);
	IS(st.st_ino == to.st_ino, 1);
	IS(close(open("at/made", O_CREAT | O_WRONLY, 0600)), 0);
	IS(access("what/made", F_OK), 0);
	IS(rename("at/made", "at/d/made"), 0);
	IS(unlink("what/d/made"), 0);
	IS(chdir("at/d"), 0);
	IS(getcwd(text, sizeof text) == text, 1);
	IS(strcmp(text + strlen(argv[1]), "/at/d"), 0);
	IS(readlink("/proc/self/cwd", text, sizeof text), (long)strlen(argv[1]) + 5);
	IS(holds("../f", "f of what\n"), 1);
	IS(holds("../../top", "top\n"), 1);
	IS(chdir("../.."), 0);
	FAILS(rmdir("at"), EBUSY);
	FAILS(rename("at", "ta"), EBUSY);
	FAILS(unlink("file"), EBUSY);
	FAILS(mkdir("at", 0700), EEXIST);
	FAILS(rename(argv[1], "/grates-test/other"), EBUSY);
	IS(truncate("file", 0), 0);
	IS(holds("what/f", ""), 1);

	/* Hidden: not there, whatever it is asked for by. */
	FAILS(open("hidden/f", O_RDONLY), ENOENT);
	FAILS(open("dir/hidden", O_RDONLY), ENOENT);
	FAILS(open("dir/../dir/./hidden", O_RDONLY), ENOENT);
	FAILS(open("to-hidden", O_RDONLY), ENOENT);
	FAILS(open("at/to-hidden", O_RDONLY), ENOENT);
	FAILS(open("dir/hidden", O_WRONLY | O_CREAT, 0600), ENOENT);
	FAILS(link("dir/hidden", "linked"), ENOENT);
	FAILS(rename("dir", "rid"), EBUSY);
	FAILS(syscall(SYS_renameat2, AT_FDCWD, "dir", AT_FDCWD, "what", 2), EBUSY);
	FAILS(chdir("hidden"), ENOENT);
	FAILS(execl("dir/hidden", "hidden", (char *)NULL), ENOENT);
	IS(lists("dir", "hidden"), 0);
	IS(lists("dir", "shown"), 1);
	IS(lists(".", "hidden"), 0);
	dir = open("dir", O_RDONLY | O_DIRECTORY);
	FAILS(openat(dir, "hidden", O_RDONLY), ENOENT);
	FAILS(fstatat(dir, "hidden", &st, 0), ENOENT);
	snprintf(text, sizeof text, "/proc/self/fd/%d/hidden", dir);
	FAILS(open(text, O_RDONLY), ENOENT);
	IS(fchdir(dir), 0);
	FAILS(open("hidden", O_RDONLY), ENOENT);
	IS(holds("shown", "shown\n"), 1);
	IS(chdir(".."), 0);

	/* Moved: there and not here. */
	moved = open("new/g", O_RDONLY);
	IS(moved >= 0, 1);
	FAILS(open("old/g", O_RDONLY), ENOENT);
	FAILS(stat("old", &st), ENOENT);
	IS(lists(".", "old"), 0);
	snprintf(text, sizeof text, "/proc/self/fd/%d", moved);
	IS(readlink(text, text, sizeof text), (long)strlen(argv[1]) + 6);
	return wrong;
}
