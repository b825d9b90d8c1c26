/* A root of its own has a directory called dev: it is as protected as any other. The kernel's is
 * not. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"

int main(int argc, char **argv)
{
	int fd;

	if (argc > 1) {
		FAILS(open("/dev/file", O_WRONLY), EROFS);
		FAILS(open("/dev/new", O_WRONLY | O_CREAT, 0600), EROFS);
		FAILS(unlink("/dev/file"), EROFS);
		return wrong;
	}
	IS((fd = open("/dev/null", O_RDWR)) >= 0, 1);
	IS(write(fd, "x", 1), 1);
	IS((fd = shm_open("/readonly-test", O_CREAT | O_RDWR, 0600)) >= 0, 1);
	IS(ftruncate(fd, 100), 0);
	IS(fchmod(fd, 0640), 0);
	IS(chmod("/dev/shm/readonly-test", 0600), 0);
	IS(shm_unlink("/readonly-test"), 0);
	return wrong;
}
