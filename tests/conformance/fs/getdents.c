/* readdir and getdents64: all names, each once, through short buffers and rewinds. */
#include "check.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#define FILES 200

static int seen[FILES];

static void note(const char *name, unsigned char type)
{
	int n;

	if (sscanf(name, "file%d", &n) == 1 && n >= 0 && n < FILES) {
		seen[n]++;
		CHECK(type == DT_REG || type == DT_UNKNOWN);
	} else if (!strcmp(name, "sub") || !strcmp(name, ".") || !strcmp(name, "..")) {
		CHECK(type == DT_DIR || type == DT_UNKNOWN);
	} else {
		CHECK_STR(name, "a name that was made");
	}
}

static int all_once(void)
{
	int right = 1;

	for (int i = 0; i < FILES; i++) {
		right &= seen[i] == 1;
		seen[i] = 0;
	}
	return right;
}

static void with_readdir(void)
{
	struct dirent *entry;
	DIR *dir = opendir("d");
	long middle = 0;
	char after[256] = "";
	int count = 0;

	NEED(dir);
	while ((entry = readdir(dir))) {
		note(entry->d_name, entry->d_type);
		if (++count == 50)
			middle = telldir(dir);
		if (count == 51)
			snprintf(after, sizeof after, "%s", entry->d_name);
	}
	CHECK_EQ(count, FILES + 3);
	CHECK(all_once());
	seekdir(dir, middle);
	NEED((entry = readdir(dir)));
	CHECK_STR(entry->d_name, after);
	rewinddir(dir);
	for (count = 0; readdir(dir); count++)
		;
	CHECK_EQ(count, FILES + 3);
	CHECK_EQ(closedir(dir), 0);
}

static void with_getdents(void)
{
	_Alignas(8) char buffer[128];
	int fd = open("d", O_RDONLY | O_DIRECTORY);
	long got;

	NEED(fd >= 0);
	while ((got = syscall(SYS_getdents64, (long)fd, buffer, (long)sizeof buffer)) > 0)
		for (long at = 0; at < got;) {
			unsigned short length = *(unsigned short *)(buffer + at + 16);

			NEED(length % 8 == 0 && length >= 24 && at + length <= got);
			note(buffer + at + 19, (unsigned char)buffer[at + 18]);
			at += length;
		}
	CHECK_EQ(got, 0);
	CHECK(all_once());
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_ERRNO(syscall(SYS_getdents64, (long)fd, buffer, 8L), EINVAL);
	close(fd);
}

int main(void)
{
	char name[32];
	int fd;

	NEED(mkdir("d", 0755) == 0 && mkdir("d/sub", 0755) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "d/file%d", i);
		close(check_file(name, ""));
	}
	with_readdir();
	with_getdents();
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "d/file%d", i);
		CHECK_EQ(unlink(name), 0);
	}
	CHECK_EQ(rmdir("d/sub"), 0);
	NEED((fd = open("d", O_RDONLY)) >= 0);
	CHECK_EQ(rmdir("d"), 0);
	CHECK_ERRNO(syscall(SYS_getdents64, (long)fd, name, 32L), ENOENT);
	close(fd);
	fd = check_file("f", "");
	CHECK_ERRNO(syscall(SYS_getdents64, (long)fd, name, 32L), ENOTDIR);
	CHECK_ERRNO(opendir("f"), ENOTDIR);
	CHECK_ERRNO(opendir("missing"), ENOENT);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
