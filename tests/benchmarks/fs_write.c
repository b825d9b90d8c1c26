/* pwrite(2) of 1 byte to 10 KiB at offset 0, over data that the file already has. */
#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NAME "fs_write.tmp"

/* As in fs_read: the same place in a page on both sides. */
static _Alignas(4096) char buffer[10240];

static void measure(int fd, size_t size, long loops)
{
	long long start = gettimens();

	for (long i = 0; i < loops; i++)
		if (pwrite(fd, buffer, size, 0) != (ssize_t)size)
			bench_die("pwrite");
	emit_since("Write", (long)size, loops, start);
}

int main(void)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		bench_die(NAME);
	memset(buffer, 'w', sizeof buffer);
	if (write(fd, buffer, sizeof buffer) != (ssize_t)sizeof buffer)
		bench_die("write");
	measure(fd, 1, 1000000);
	measure(fd, 1024, 1000000);
	measure(fd, 4096, 1000000);
	measure(fd, 10240, 100000);
	close(fd);
	unlink(NAME);
	return 0;
}
