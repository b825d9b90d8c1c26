/* files PATH...: writes to each, reads it back, and says what came of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int try(const char *path)
{
	char back[8];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), wrong = 0;

	if (fd < 0)
		return errno;
	errno = 0;
	if (write(fd, "hello", 5) != 5 || pread(fd, back, sizeof back, 0) != 5 || memcmp(back, "hello", 5))
		wrong = errno ? errno : EIO;
	close(fd);
	return wrong;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int wrong = try(argv[i]);

		printf("%s: %s\n", argv[i], wrong ? strerror(wrong) : "written");
	}
	return 0;
}
