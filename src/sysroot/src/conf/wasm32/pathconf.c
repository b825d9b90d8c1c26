/* Only for a file that exists: musl's does not check. */
#define _GNU_SOURCE
#include <unistd.h>
#include <fcntl.h>

long pathconf(const char *path, int name)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -1;
	long value = fpathconf(fd, name);
	close(fd);
	return value;
}
