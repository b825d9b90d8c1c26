/*
 * The program in C that is timed on an overlay. It works in its working directory and prints one
 * line of JSON: seconds of each phase, and what it has seen, which must be the same wherever it
 * runs. child.py is the same in Python.
 *
 *	child list
 *	child files NUMBER		makes so many
 *	child read-path FILES DIRECTORIES SCAN STAT READDIR OPEN OPEN-BYTES REPEAT REPEAT-FILES
 *	child large-edit FILE CASE
 *	child git MIRROR GIT READ-FILES READ-BYTES EDIT-FILES TOKEN FSCK
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "child.h"

#define MOST 40

uint64_t digest;
static struct {
	const char *name;
	double seconds;
} phases[MOST];
static struct {
	const char *name;
	int64_t number;
} counts[MOST];
static int phase_count, count_count;
static double started, before;

void fail(const char *what)
{
	fprintf(stderr, "child: %s: %s\n", what, strerror(errno));
	exit(1);
}

void seen(const void *bytes, size_t length)
{
	const uint8_t *p = bytes;
	uint64_t word;

	for (; length >= 8; p += 8, length -= 8) {
		memcpy(&word, p, 8);
		digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
		digest ^= digest >> 29;
	}
	for (; length; length--)
		digest = (digest ^ *p++) * 0x100000001b3u;
}

void seen_text(const char *text)
{
	seen(text, strlen(text) + 1);
}

void seen_number(int64_t number)
{
	seen(&number, sizeof number);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void begin(void)
{
	before = now();
	if (!started)
		started = before;
}

void phase(const char *name)
{
	double at = now();

	phases[phase_count].name = name;
	phases[phase_count++].seconds = at - before;
	before = now();
}

void count(const char *name, int64_t number)
{
	counts[count_count].name = name;
	counts[count_count++].number = number;
}

static void add(struct paths *to, const char *path)
{
	if (!(to->count & (to->count - 1)) &&
	    !(to->at = realloc(to->at, (to->count ? to->count * 2 : 1) * sizeof *to->at)))
		fail("memory");
	if (!(to->at[to->count++] = strdup(path)))
		fail("memory");
}

/* One kind of path. */
static void walk(const char *path, unsigned char kind, struct paths *to)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char below[4096];

	if (!d)
		fail(path);
	if (kind == DT_DIR)
		add(to, path);
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(below, sizeof below, "%s/%s", path, e->d_name);
		if (e->d_type == DT_DIR)
			walk(below, kind, to);
		else if (e->d_type == kind)
			add(to, below);
	}
	closedir(d);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void discover(struct paths *files, struct paths *directories)
{
	walk(".", DT_REG, files);
	walk(".", DT_DIR, directories);
	qsort(files->at, files->count, sizeof *files->at, by_name);
	qsort(directories->at, directories->count, sizeof *directories->at, by_name);
}

static void print(double total)
{
	printf("{\"total\": %.9f, \"digest\": \"%016llx\", \"phases\": {", total, (unsigned long long)digest);
	for (int i = 0; i < phase_count; i++)
		printf("%s\"%s\": %.9f", i ? ", " : "", phases[i].name, phases[i].seconds);
	printf("}, \"counts\": {");
	for (int i = 0; i < count_count; i++)
		printf("%s\"%s\": %lld", i ? ", " : "", counts[i].name, (long long)counts[i].number);
	printf("}}\n");
}

static void make_files(char **arguments)
{
	char name[40] = "";

	begin();
	for (long i = 0; i < atol(arguments[0]); i++) {
		int fd;

		snprintf(name, sizeof name, "made_%05ld.txt", i);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || write(fd, name, sizeof name) != sizeof name || close(fd))
			fail(name);
	}
	phase("make");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int arguments;
		void (*run)(char **);
	} workloads[] = {
		{ "read-path", 9, read_path },
		{ "large-edit", 2, large_edit },
		{ "git", 7, git_work },
		{ "files", 1, make_files },
	};
	struct paths files = { 0 }, directories = { 0 };

	begin();
	if (argc == 2 && !strcmp(argv[1], "list")) {
		discover(&files, &directories);
		count("files", (int64_t)files.count);
		print(now() - started);
		return 0;
	}
	for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
		if (argc == 2 + workloads[i].arguments && !strcmp(argv[1], workloads[i].name)) {
			workloads[i].run(argv + 2);
			print(now() - started);
			return 0;
		}
	fprintf(stderr, "child: which workload?\n");
	return 2;
}
