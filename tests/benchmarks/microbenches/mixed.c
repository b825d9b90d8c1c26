/* For lind-boot --perf: many different calls, so that the report shows a line for each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME "microbench_mixed.tmp"

static int round_of_calls(int fd)
{
	char buffer[64] = "mixed", name[256];
	struct timespec now;
	struct stat st;
	void *page;

	if (pwrite(fd, buffer, sizeof buffer, 0) != (ssize_t)sizeof buffer)
		return 1;
	if (lseek(fd, 0, SEEK_SET) || read(fd, buffer, sizeof buffer) != (ssize_t)sizeof buffer)
		return 1;
	if (fstat(fd, &st) || access(NAME, R_OK) || !getcwd(name, sizeof name))
		return 1;
	if (clock_gettime(CLOCK_MONOTONIC, &now))
		return 1;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED || munmap(page, 4096);
}

int main(void)
{
	int failed = 0;
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		return 1;
	for (long i = 0; i < 20000 && !failed; i++)
		failed = round_of_calls(fd);
	return unlink(NAME) || failed;
}
