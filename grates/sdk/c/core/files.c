/* Files that options name: those of the user, which lind-boot has opened, and on request those
 * of the root. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/raw.h>
#include <stdlib.h>
#include <string.h>

#define INSIDE "root:"
#define HANDED "host:"

/* host:NUMBER:NAME, from lind-boot. NULL for what is none. */
static const char *handed(const char *value, unsigned long *number)
{
	char *end;

	if (strncmp(value, HANDED, sizeof HANDED - 1) || value[sizeof HANDED - 1] < '0' ||
	    value[sizeof HANDED - 1] > '9')
		return NULL;
	*number = strtoul(value + sizeof HANDED - 1, &end, 10);
	return *end == ':' ? end + 1 : NULL;
}

const char *lind_file_name(const char *value)
{
	unsigned long number;
	const char *name = handed(value, &number);

	if (name)
		return name;
	return strncmp(value, INSIDE, sizeof INSIDE - 1) ? value : value + sizeof INSIDE - 1;
}

const char *lind_path_inside(const char *value)
{
	unsigned long number;

	if (!strncmp(value, INSIDE, sizeof INSIDE - 1))
		return value + sizeof INSIDE - 1;
	/* A grate that a program has started for itself, and not the user: its files are that
	 * program's. */
	return lind_import_syscall(SYS_host_file, UINT64_MAX, 0, 0, 0, 0, 0) == -EPERM && !handed(value, &number)
	    ? value
	    : NULL;
}

int lind_open_file(const char *value, const char *ending, int flags, unsigned mode)
{
	const char *inside = lind_path_inside(value), *name = lind_file_name(value);
	unsigned long number;
	char path[PATH_MAX];
	int64_t fd;

	if (inside) {
		if (strlen(inside) + (ending ? strlen(ending) : 0) >= sizeof path) {
			errno = ENAMETOOLONG;
			return -1;
		}
		strcat(strcpy(path, inside), ending ? ending : "");
		/* An explanation writes nothing, and the file to be written may not exist yet. */
		if (lind_explains() && flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))
			return open("/dev/null", O_RDONLY | O_CLOEXEC);
		return open(path, flags | O_CLOEXEC, mode);
	}
	if (!handed(value, &number)) {
		lind_log(
		    "%s: lind-boot opens no files for grates behind a program of the root; use root:%s for a file inside the root",
		    name, name);
		errno = ENOENT;
		return -1;
	}
	/* A directory comes behind the files. */
	fd = lind_import_syscall(SYS_host_file, number + (ending ? *ending == '/' ? 2 : 1 : 0), 0, 0, 0, 0, 0);
	if (fd < 0)
		errno = fd == -EBADF ? ENOENT : (int)-fd;
	return fd < 0 ? -1 : (int)fd;
}

FILE *lind_read_file(const char *value)
{
	int fd = lind_open_file(value, NULL, O_RDONLY, 0);

	return fd < 0 ? NULL : fdopen(fd, "r");
}
