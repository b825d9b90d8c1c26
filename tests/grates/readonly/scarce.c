/* Runs its arguments with room for few descriptors; without arguments makes many calls, of which
 * the grate must keep nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "../check.h"

static void once(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "rw/sock" };
	int fd, s = socket(AF_UNIX, SOCK_STREAM, 0);
	char name[64];

	FAILS(open("none/none", O_WRONLY | O_CREAT, 0600), ENOENT);
	FAILS(open("f/none", O_WRONLY | O_CREAT, 0600), ENOTDIR);
	FAILS(open("loop", O_WRONLY | O_CREAT, 0600), ELOOP);
	FAILS(open("/proc/self/fd/99/none", O_WRONLY | O_CREAT, 0600), ENOENT);
	FAILS(open("/proc/self/cwd/rw/../f", O_WRONLY), EROFS);
	FAILS(rename("f", "rw/x/y"), ENOENT);
	FAILS(link("rw/f", "new"), EROFS);
	FAILS(open("rw/f/", O_WRONLY), ENOTDIR);
	IS((fd = open("rw/f", O_RDWR)) >= 0, 1);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	IS(close(open(name, O_RDWR)), 0);
	snprintf(name, sizeof name, "/proc/self/fd/%d/x", fd);
	FAILS(open(name, O_RDWR), ENOTDIR);
	IS(ftruncate(fd, 10), 0);
	IS(truncate("rw/f", 10), 0);
	IS(bind(s, (struct sockaddr *)&a, sizeof a), 0);
	IS(unlink("rw/sock"), 0);
	IS(close(fd) || close(s), 0);
}

int main(int argc, char **argv)
{
	struct rlimit few = { 64, 64 };

	if (argc > 1) {
		IS(setrlimit(RLIMIT_NOFILE, &few), 0);
		execv(argv[1], argv + 1);
		return 1;
	}
	for (int i = 0; i < 200 && !wrong; i++)
		once();
	return wrong;
}
