/* inotify: what happens in a directory and to a file. */
#include "check.h"

#include <sys/inotify.h>
#include <sys/stat.h>

static char buffer[4096] __attribute__((aligned(8)));

/* Whether the next events have one with this mask and name. */
static int came(int fd, int watch, uint32_t mask, const char *name)
{
	ssize_t n = read(fd, buffer, sizeof buffer);
	int found = 0;

	for (char *at = buffer; at < buffer + n;) {
		struct inotify_event *event = (struct inotify_event *)at;

		found |=
		    event->wd == watch && (event->mask & mask) && (!name || (event->len && !strcmp(event->name, name)));
		at += sizeof *event + event->len;
	}
	return found;
}

int main(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), dir, file, flags;

	if (fd < 0)
		check_skip("no inotify here");
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	flags = fcntl(fd, F_GETFL);
	CHECK(flags & O_NONBLOCK);
	NEED(mkdir("d", 0755) == 0);
	NEED((dir = inotify_add_watch(fd, "d", IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) >= 0);
	CHECK_ERRNO(read(fd, buffer, sizeof buffer), EAGAIN);
	close(check_file("d/f", "x"));
	CHECK(came(fd, dir, IN_CREATE, "f"));
	NEED((file = inotify_add_watch(fd, "d/f", IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF)) >= 0);
	CHECK(file != dir);
	CHECK_EQ(inotify_add_watch(fd, "d/../d/f", IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF), file);
	close(check_file("d/f", "xy"));
	CHECK(came(fd, file, IN_MODIFY, NULL));
	CHECK_EQ(rename("d/f", "d/g"), 0);
	CHECK(came(fd, dir, IN_MOVED_TO, "g"));
	CHECK_EQ(inotify_rm_watch(fd, file), 0);
	CHECK(came(fd, file, IN_IGNORED, NULL));
	CHECK_ERRNO(inotify_rm_watch(fd, file), EINVAL);
	CHECK_EQ(unlink("d/g"), 0);
	CHECK(came(fd, dir, IN_DELETE, "g"));
	CHECK_ERRNO(inotify_add_watch(fd, "missing", IN_CREATE), ENOENT);
	close(check_file("f", ""));
	CHECK_ERRNO(inotify_add_watch(fd, "f", IN_CREATE | IN_ONLYDIR), ENOTDIR);
	CHECK_ERRNO(inotify_add_watch(fd, "f", 0), EINVAL);
	CHECK_ERRNO(inotify_add_watch(0, "f", IN_CREATE), EINVAL);
	CHECK_ERRNO(inotify_add_watch(-1, "f", IN_CREATE), EBADF);
	NEED(symlink("d", "l") == 0);
	NEED((file = inotify_add_watch(fd, "l", IN_ATTRIB | IN_DONT_FOLLOW)) >= 0);
	CHECK(file != dir);
	CHECK_EQ(inotify_add_watch(fd, "l", IN_CREATE), dir);
	CHECK_EQ(unlink("l") | unlink("f") | rmdir("d"), 0);
	close(fd);
	return check_done();
}
