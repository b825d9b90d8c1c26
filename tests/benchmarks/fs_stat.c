/* stat() of a file six levels deep in a directory: the working directory, or the one that is
 * named. */
#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOPS 200000

int main(int argc, char **argv)
{
	static const char *const names[] = { "1", "1/2", "1/2/3", "1/2/3/4", "1/2/3/4/5" };
	const char *top = argc > 1 ? argv[1] : ".";
	char path[4096];
	struct stat found;
	int fd;

	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof path, "%s/%s", top, names[i]);
		mkdir(path, 0755);
	}
	snprintf(path, sizeof path, "%s/1/2/3/4/5/file", top);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		bench_die(path);
	close(fd);

	long long start = gettimens();
	for (long i = 0; i < LOOPS; i++)
		if (stat(path, &found))
			bench_die(path);
	emit_since("Stat", 6, LOOPS, start);
	unlink(path);
	for (int i = 4; i >= 0; i--) {
		snprintf(path, sizeof path, "%s/%s", top, names[i]);
		rmdir(path);
	}
	return 0;
}
