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

struct entry {
	uint64_t ino, off;
	unsigned short reclen;
	unsigned char type;
	char name[80];
};

/* Lists the contents of a directory. How much of it a call returns is up to the host: a signal ends
 * it early, also one that its caller takes no notice of. */
static int list(long call, const char *path, size_t size, struct entry *entries, int room)
{
	_Alignas(8) static char buffer[8192];
	int fd = open(path, O_RDONLY | O_DIRECTORY), count = 0;
	long got;

	NEED(fd >= 0);
	for (;;) {
		memset(buffer, 0x5a, sizeof buffer);
		got = syscall(call, (long)fd, buffer, (long)size);
		CHECK(got >= 0 && got <= (long)size);
		if (got <= 0)
			break;
		for (long at = 0; at < got;) {
			struct old *old = (struct old *)(buffer + at);
			struct new *new = (struct new *)(buffer + at);
			int is_old = call == SYS_getdents;

			NEED(count < room && old->reclen > 0);
			entries[count] = (struct entry){ old->ino, old->off, old->reclen, new->type, "" };
			if (is_old)
				entries[count].type = buffer[at + old->reclen - 1];
			snprintf(entries[count].name, sizeof entries->name, "%s", is_old ? old->name : new->name);
			count++;
			at += old->reclen;
		}
	}
	close(fd);
	return count;
}

static void compare(const char *path, size_t size)
{
	static struct entry was[400], is[400];
	int count = list(SYS_getdents64, path, size, is, 400);

	CHECK_EQ(list(SYS_getdents, path, size, was, 400), count);
	CHECK(count >= 2);
	for (int i = 0; i < count; i++) {
		CHECK_EQ(was[i].ino, is[i].ino);
		CHECK_EQ(was[i].off, is[i].off);
		CHECK_EQ(was[i].reclen, is[i].reclen);
		CHECK_EQ(was[i].type, is[i].type);
		CHECK_STR(was[i].name, is[i].name);
	}
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
