/* Files by name: open and close of one, stat of one, and reading a directory of 1,000 entries. The
 * file system is that of the working directory: `benchrunner.py --dir /dev/shm` compares with a
 * tmpfs of the host. */
#include "bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_NAME  "fs_meta.tmp"
#define FILES     1000
#define FILE_NAME DIR_NAME "/f500"

static void name_of(int i, char *name, size_t size)
{
	snprintf(name, size, DIR_NAME "/f%d", i);
}

static void open_and_close(long loops)
{
	long long start = gettimens();

	for (long i = 0; i < loops; i++) {
		int fd = open(FILE_NAME, O_RDONLY);

		if (fd < 0 || close(fd))
			bench_die(FILE_NAME);
	}
	emit_since("Open+close", 0, loops, start);
}

static void stat_it(long loops)
{
	long long start = gettimens();
	struct stat st;

	for (long i = 0; i < loops; i++)
		if (stat(FILE_NAME, &st) || !S_ISREG(st.st_mode))
			bench_die(FILE_NAME);
	emit_since("Stat", 0, loops, start);
}

static void read_directory(long loops)
{
	long long start = gettimens();

	for (long i = 0; i < loops; i++) {
		DIR *dir = opendir(DIR_NAME);
		int entries = 0;

		if (!dir)
			bench_die(DIR_NAME);
		while (readdir(dir))
			entries++;
		closedir(dir);
		bench_expect("entries with . and ..", (unsigned long long)entries, FILES + 2);
	}
	emit_since("Readdir", FILES, loops, start);
}

int main(void)
{
	char name[64];

	if (mkdir(DIR_NAME, 0700))
		bench_die(DIR_NAME);
	for (int i = 0; i < FILES; i++) {
		int fd;

		name_of(i, name, sizeof name);
		if ((fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600)) < 0 || close(fd))
			bench_die(name);
	}
	open_and_close(200000);
	stat_it(200000);
	read_directory(1000);
	for (int i = 0; i < FILES; i++) {
		name_of(i, name, sizeof name);
		unlink(name);
	}
	rmdir(DIR_NAME);
	return 0;
}
