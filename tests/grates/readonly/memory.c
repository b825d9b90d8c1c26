/* Over files that another grate keeps: what may be changed is below /tmp. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"

static int made(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	return fd < 0 ? -1 : close(fd);
}

int main(void)
{
	int fd;

	IS(chdir("/"), 0);
	FAILS(made("/file"), EROFS);
	FAILS(made("file"), EROFS);
	FAILS(mkdir("dir", 0700), EROFS);
	IS(mkdir("/tmp/d", 0700), 0);
	IS(made("tmp/d/f"), 0);
	IS(chdir("/tmp/d"), 0);
	IS(made("g"), 0);
	IS(made("../h"), 0);
	FAILS(made("../../i"), EROFS);
	IS(symlink("/", "root"), 0);
	FAILS(made("root/i"), EROFS);
	IS(rename("g", "../../tmp/j"), 0);
	FAILS(rename("/tmp/j", "/j"), EROFS);
	FAILS(chmod("/in", 0600), EROFS);
	IS((fd = open("/in", O_RDONLY)) >= 0, 1);
	IS(fchmod(fd, 0600), -1);
	IS(futimens(fd, NULL), -1);
	FAILS(open("/in", O_WRONLY), EROFS);
	return wrong;
}
