/* For lind-boot --perf: 1,000,000 calls that check a buffer and enter the host. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	char byte = 'p';
	int fd = open("microbench_pread.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, &byte, 1) != 1)
		return 1;
	unlink("microbench_pread.tmp");
	for (long i = 0; i < 1000000; i++)
		if (pread(fd, &byte, 1, 0) != 1)
			return 1;
	return 0;
}
