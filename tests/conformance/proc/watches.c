/* Tests the watches of an inotify instance in /proc/self/fdinfo. */
#include "check.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "slurp.h"

static char *info(int fd)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	return slurp(path);
}

/* Whether the text has a watch of this number, and, if `st` is given, of this file with these
 * events. */
static int is_watched(int number, const struct stat *st, unsigned events)
{
	unsigned long inode;
	unsigned wd, device, mask;

	for (char *at = strstr(text, "inotify "); at; at = strstr(at + 1, "inotify ")) {
		NEED(sscanf(at, "inotify wd:%x ino:%lx sdev:%x mask:%x ignored_mask:0 ", &wd, &inode, &device, &mask) ==
		    4);
		if ((int)wd == number)
			return !st ||
			    (inode == st->st_ino && (mask & IN_ALL_EVENTS) == events &&
				device == (major(st->st_dev) << 20 | minor(st->st_dev)));
	}
	return 0;
}

int main(void)
{
	int fd, file, directory;
	struct stat of_file, of_directory;
	char name[] = "fdinfo.XXXXXX";

	if (access("/proc/self/fdinfo", R_OK))
		check_skip("no /proc here");
	NEED((fd = inotify_init1(IN_NONBLOCK)) >= 0);
	CHECK(!strstr(info(fd), "inotify "));
	NEED((file = mkstemp(name)) >= 0 && !fstat(file, &of_file) && !stat(".", &of_directory));
	close(file);
	NEED((file = inotify_add_watch(fd, name, IN_MODIFY)) > 0);
	NEED((directory = inotify_add_watch(fd, ".", IN_CREATE | IN_DELETE)) > 0);
	info(fd);
	CHECK(is_watched(file, &of_file, IN_MODIFY) && is_watched(directory, &of_directory, IN_CREATE | IN_DELETE));
	CHECK_EQ(inotify_add_watch(fd, name, IN_ATTRIB | IN_MASK_ADD), file);
	CHECK_EQ(inotify_add_watch(fd, ".", IN_OPEN), directory);
	info(fd);
	CHECK(is_watched(file, &of_file, IN_MODIFY | IN_ATTRIB) && is_watched(directory, &of_directory, IN_OPEN));
	CHECK_EQ(inotify_rm_watch(fd, file), 0);
	CHECK_ERRNO(inotify_rm_watch(fd, file), EINVAL);
	info(fd);
	CHECK(!is_watched(file, NULL, 0) && is_watched(directory, NULL, 0));
	close(fd);
	unlink(name);
	return check_done();
}
