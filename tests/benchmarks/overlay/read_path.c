/* Seven phases of looking at a tree and reading it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "child.h"

/* The bytes that a buffered reader asks for at a time, whatever its caller wants. */
#define BUFFER 8192

static void scan(const struct paths *files, size_t keep)
{
	static char buffer[1 << 20];

	for (size_t i = 0; i < files->count; i++) {
		int fd = open(files->at[i], O_RDONLY | O_CLOEXEC);
		size_t total = 0;
		ssize_t got;

		if (fd < 0)
			fail(files->at[i]);
		while ((got = read(fd, buffer, sizeof buffer)) > 0) {
			if (total < keep)
				seen(buffer, (size_t)got < keep - total ? (size_t)got : keep - total);
			total += (size_t)got;
		}
		close(fd);
		seen_number((int64_t)total);
	}
}

static void stat_storm(const struct paths *files, int times)
{
	struct stat st;

	for (int i = 0; i < times; i++)
		for (size_t j = 0; j < files->count; j++) {
			if (stat(files->at[j], &st))
				fail(files->at[j]);
			seen_number(st.st_size);
			seen_number(st.st_mode & S_IFMT);
			if (lstat(files->at[j], &st))
				fail(files->at[j]);
			seen_number(st.st_size);
			seen_number(st.st_mode & S_IFMT);
		}
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int without_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
}

/* `plus`: with lstat of every entry. */
static void readdir_storm(const struct paths *directories, int times, bool plus)
{
	struct dirent **entries;
	struct stat st;
	char path[4096];

	for (int i = 0; i < times; i++)
		for (size_t j = 0; j < directories->count; j++) {
			int n = scandir(directories->at[j], &entries, without_dots, by_name);

			if (n < 0)
				fail(directories->at[j]);
			for (int k = 0; k < n; k++) {
				seen_text(entries[k]->d_name);
				if (plus) {
					snprintf(path, sizeof path, "%s/%s", directories->at[j], entries[k]->d_name);
					if (lstat(path, &st))
						fail(path);
					seen_number(S_ISDIR(st.st_mode) ? 0 : st.st_size);
					seen_number(st.st_mode & S_IFMT);
				}
				free(entries[k]);
			}
			free(entries);
		}
}

static void open_loop(const struct paths *files, int times, size_t most, size_t bytes)
{
	static char buffer[BUFFER];
	struct stat st;

	for (int i = 0; i < times; i++)
		for (size_t j = 0; j < files->count && j < most; j++) {
			int fd = open(files->at[j], O_RDONLY | O_CLOEXEC);
			ssize_t got;

			if (fd < 0 || fstat(fd, &st) || (got = read(fd, buffer, sizeof buffer)) < 0)
				fail(files->at[j]);
			close(fd);
			seen(buffer, (size_t)got < bytes ? (size_t)got : bytes);
		}
}

void read_path(char **arguments)
{
	struct paths files = { 0 }, directories = { 0 };
	long n[9];

	for (int i = 0; i < 9; i++)
		n[i] = atol(arguments[i]);
	begin();
	discover(&files, &directories);
	phase("tree_discovery");
	files.count = files.count < (size_t)n[0] ? files.count : (size_t)n[0];
	directories.count = directories.count < (size_t)n[1] ? directories.count : (size_t)n[1];
	begin();
	scan(&files, (size_t)n[2]);
	phase("bounded_file_scan");
	stat_storm(&files, (int)n[3]);
	phase("stat_lstat_storm");
	readdir_storm(&directories, (int)n[4], false);
	phase("readdir_storm");
	readdir_storm(&directories, (int)n[4], true);
	phase("readdir_plus_storm");
	open_loop(&files, (int)n[5], SIZE_MAX, (size_t)n[6]);
	phase("open_read_close_loop");
	open_loop(&files, (int)n[7], (size_t)n[8], (size_t)n[6]);
	phase("repeated_open_read_close_loop");
	count("files", (int64_t)files.count);
	count("directories", (int64_t)directories.count);
}
