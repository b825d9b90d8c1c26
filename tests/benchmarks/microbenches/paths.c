/* For lind-boot --perf: 100,000 rounds of calls that resolve a path: open, stat, close. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "microbench_paths.tmp"

int main(void)
{
	struct stat st;

	for (long i = 0; i < 100000; i++) {
		int fd = open(NAME, O_RDWR | O_CREAT, 0600);

		if (fd < 0 || stat(NAME, &st) || close(fd))
			return 1;
	}
	return unlink(NAME) != 0;
}
