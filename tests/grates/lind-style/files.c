/* Writes and reads a file in /mem, and one outside. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NEED(x) \
	do { \
		if (!(x)) { \
			printf("%d: %s (%s)\n", __LINE__, #x, strerror(errno)); \
			return 1; \
		} \
	} while (0)

int main(int argc, char **argv)
{
	char big[5000], got[5000];
	int fd = open("/mem/a", O_RDWR | O_CREAT, 0600), outside;

	NEED(fd >= 0);
	if (argc > 1)
		printf("fd %d\n", fd);
	memset(big, 'x', sizeof big);
	big[4999] = 'y';
	NEED(write(fd, big, sizeof big) == sizeof big);
	NEED(lseek(fd, 0, SEEK_CUR) == 5000);
	NEED(lseek(fd, -5000, SEEK_END) == 0);
	NEED(read(fd, got, sizeof got) == sizeof got && !memcmp(big, got, sizeof got));
	NEED(read(fd, got, 1) == 0);
	NEED(lseek(fd, -1, SEEK_SET) == -1 && errno == EINVAL);
	NEED(lseek(fd, 4999, SEEK_SET) == 4999 && read(fd, got, 10) == 1 && *got == 'y');
	NEED(lseek(fd, 0, SEEK_SET) == 0 && read(fd, (void *)16, 5) == -1 && errno == EFAULT);
	NEED(close(fd) == 0 && close(fd) == -1 && errno == EBADF);
	NEED(open("/mem/none", O_RDONLY) == -1 && errno == ENOENT);
	NEED(open((char *)8, O_RDONLY) == -1 && errno == EFAULT);
	outside = open(argv[0], O_RDONLY);
	NEED(outside >= 0 && outside < 100 && read(outside, got, 4) == 4 && lseek(outside, 1, SEEK_SET) == 1 &&
	    !close(outside));
	return 0;
}
