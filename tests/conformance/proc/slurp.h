/* All of a file of /proc, until the next one is read: there is nothing behind its end. */
#include <unistd.h>

static char text[1 << 20];
static int text_length;

static char *slurp(const char *path)
{
	int fd = open(path, O_RDONLY);
	size_t n = 0;
	ssize_t got;

	NEED(fd >= 0);
	while ((got = read(fd, text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	text_length = (int)n;
	CHECK_EQ(got, 0);
	CHECK_EQ(pread(fd, &got, 1, sizeof text), 0);
	close(fd);
	return text;
}
