/* Sockets with names below a root of one's own. */
#include "check.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

int main(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/b/../s" }, found = { 0 };
	socklen_t length = sizeof found;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), outside = open(".", O_RDONLY | O_DIRECTORY), fd;
	struct stat st;

	NEED(listener >= 0 && outside >= 0 && mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0);
	if (chroot("a")) {
		CHECK_EQ(errno, EPERM);
		CHECK_EQ(rmdir("a/b") | rmdir("a"), 0);
		check_skip("nobody may change the root here");
	}
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&found, &length), 0);
	CHECK_STR(found.sun_path, "/b/../s");
	CHECK_EQ(fstatat(outside, "a/s", &st, 0), 0);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, "/to_s");
	CHECK_EQ(symlink("/s", "/to_s"), 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	length = sizeof found;
	CHECK_EQ(getpeername(fd, (struct sockaddr *)&found, &length), 0);
	CHECK_STR(found.sun_path, "/b/../s");
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, "a/s");
	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, "/a/s");
	CHECK_ERRNO(connect(fd, (struct sockaddr *)&address, sizeof address), ENOENT);
	strcpy(address.sun_path, "/s");
	CHECK_ERRNO(bind(fd, (struct sockaddr *)&address, sizeof address), EADDRINUSE);
	close(fd);
	close(listener);
	CHECK_EQ(unlink("/s") | unlink("/to_s") | rmdir("/b"), 0);
	CHECK_EQ(unlinkat(outside, "a", AT_REMOVEDIR), 0);
	return check_done();
}
