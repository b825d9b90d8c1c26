/* Tests that every entry that one of the kernel's own directories lists exists, and is of the type
 * that readdir reports. */
#include "check.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const DIRECTORIES[] = {
	"/dev",
	"/dev/pts",
	"/dev/shm",
	"/proc",
	"/proc/self",
	"/proc/self/fdinfo",
	"/proc/self/task",
	"/proc/thread-self",
	"/proc/sys",
	"/proc/sys/fs",
	"/proc/sys/kernel",
	"/proc/sys/net",
	"/proc/sys/vm",
	"/sys/devices/system",
	"/sys/devices/system/cpu",
};

static void look(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[512];
	struct stat st;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		/* A process may end meanwhile. */
		if (!strcmp(directory, "/proc") && isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		if (lstat(path, &st)) {
			printf("%s is listed: %s\n", path, strerror(errno));
			CHECK(!"a listed file exists");
		} else if (entry->d_type != DT_UNKNOWN && entry->d_type != IFTODT(st.st_mode)) {
			printf("%s is listed as %d, and is %o\n", path, entry->d_type, st.st_mode);
			CHECK(!"it is what is listed");
		}
	}
	closedir(dir);
}

int main(void)
{
	struct stat st;

	for (size_t i = 0; i < sizeof DIRECTORIES / sizeof *DIRECTORIES; i++)
		look(DIRECTORIES[i]);
	/* A file that does not exist fails in open as in lstat. */
	if (lstat("/dev/console", &st))
		CHECK_ERRNO(open("/dev/console", O_RDWR | O_NOCTTY), ENOENT);
	return check_done();
}
