/* getdents, the old one: the same entries as getdents64, with the type behind the name. */
#include "../check.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct old {
	uint64_t ino, off;
	unsigned short reclen;
	char name[];
};

struct new {
	uint64_t ino, off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

static void compare(const char *path, size_t size)
{
	_Alignas(8) static char was[8192], is[8192];
	int a = open(path, O_RDONLY | O_DIRECTORY), b = open(path, O_RDONLY | O_DIRECTORY);
	long from, to, at;
	int count = 0;

	NEED(a >= 0 && b >= 0);
	for (;;) {
		to = syscall(SYS_getdents64, (long)a, is, (long)size);
		memset(was, 0x5a, sizeof was);
		from = syscall(SYS_getdents, (long)b, was, (long)size);
		CHECK_EQ(from, to);
		if (from <= 0 || from != to)
			break;
		for (at = 0; at < from; count++) {
			struct old *old = (struct old *)(was + at);
			struct new *new = (struct new *)(is + at);
			NEED(old->reclen == new->reclen && old->reclen > 0);
			CHECK_EQ(old->ino, new->ino);
			CHECK_EQ(old->off, new->off);
			CHECK_STR(old->name, new->name);
			CHECK_EQ(was[at + old->reclen - 1], new->type);
			at += old->reclen;
		}
	}
	CHECK(count >= 2);
	close(a);
	close(b);
}

int main(void)
{
	char name[80], buffer[64];
	int i, fd;

	/* A policy may do without it. */
	if (syscall(SYS_getdents, -1L, buffer, 64L) < 0 && errno == ENOSYS) {
		printf("there is no getdents\n");
		return 77;
	}
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "%.*s", i + 1, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
		if (i % 5 == 0)
			NEED(mkdir(name, 0700) == 0);
		else if (i % 5 == 1)
			NEED(symlink("nowhere", name) == 0);
		else
			close(check_file(name, "x"));
	}
	compare(".", 8192);
	compare(".", 200);
	compare("/proc/self", 4096);
	fd = open(".", O_RDONLY | O_DIRECTORY);
	NEED(fd >= 0);
	CHECK_ERRNO(syscall(SYS_getdents, (long)fd, buffer, 4L), EINVAL);
	CHECK_ERRNO(syscall(SYS_getdents, (long)fd, 1L, 4096L), EFAULT);
	CHECK_ERRNO(syscall(SYS_getdents, 1000L, buffer, 64L), EBADF);
	close(fd);
	fd = open("abc", O_RDONLY);
	CHECK_ERRNO(syscall(SYS_getdents, (long)fd, buffer, 64L), ENOTDIR);
	close(fd);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "%.*s", i + 1, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
		if (i % 5 == 0)
			rmdir(name);
		else
			unlink(name);
	}
	return check_done();
}
