/*
 * Random operations on a tree, all that they return as lines, and the tree as text. The same
 * program runs on Linux over a copy of the tree and in a cage over an overlay: lines and trees must
 * be alike. Each file of it is a few lines for each call.
 *
 *	model run DIR SEED OPERATIONS [ROUNDS]	the tree after each round, by the next seed
 *	model make DIR SEED OPERATIONS	a tree to begin with: operations, then all times set into the past
 *	model tree DIR [numbers]	the tree
 *	model hash DIR			a hash of it
 *	model byte DIR			changes one byte in the middle of the file `big`
 *	model crash DIR SEED OPERATIONS	small operations, fsyncs, the number of calls so far
 *	model replay DIR SEED OPERATIONS FROM	the same; after each call from FROM on, a hash of the tree
 *	model at DIR SEED OPERATIONS FROM	the tree after that call
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "model.h"

uint32_t largest = 300000;
bool users, quiet;
long operation_number;

static uint64_t state;
static long changes, replay_from = -1;
static bool tree_of_one;

void seed_with(uint64_t from)
{
	state = from * 0x9e3779b97f4a7c15ull + 1;
}

uint32_t any(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % n;
}

void changed(void)
{
	uid_t user = geteuid();
	gid_t group = getegid();

	if (++changes < replay_from || replay_from < 0)
		return;
	be_root();
	if (tree_of_one) {
		whole_tree(stdout, false);
		exit(0);
	}
	printf("%ld %016llx\n", changes, (unsigned long long)whole_tree(NULL, false));
	fflush(stdout);
	if (user && users && (setegid(group) || seteuid(user)))
		exit(2);
}

static void operations(long count)
{
	for (operation_number = 0; operation_number < count; operation_number++)
		one_operation();
}

/* A directory that is read in several calls; every tenth file is long and has a hole, every seventh
 * has two names. */
static void make_many(void)
{
	static char bytes[90000];
	char name[20], before[20] = "";
	int fd;

	mkdir("m", 0755);
	for (int i = 0; i < 150; i++) {
		snprintf(name, sizeof name, "m/f%03d", i);
		memset(bytes, 'a' + i % 26, sizeof bytes);
		if (i % 7 == 6 && !link(before, name))
			continue;
		fd = open(name, O_WRONLY | O_CREAT, 0644);
		if (fd < 0 || write(fd, bytes, i % 10 ? (size_t)i : sizeof bytes) < 0 ||
		    (i % 10 == 0 && pwrite(fd, bytes, 5000, 150000) < 0))
			exit(2);
		close(fd);
		strcpy(before, name);
	}
}

static void run(uint64_t from, long count, int rounds)
{
	struct stat st;

	/* An empty tree, where what stands for the directory may have any mode. */
	if (stat("m", &st) && !chmod(".", 0777))
		make_many();
	for (int i = 0; i < rounds; i++) {
		seed_with(from + (uint64_t)i);
		printf("seed %llu\n", (unsigned long long)(from + (uint64_t)i));
		operations(count);
		close_all();
		be_root();
		whole_tree(stdout, false);
	}
}

static void age(int dir, const char *name)
{
	const struct timespec when[2] = { { PAST - 1 - any(1000000), any(1000000000) },
		{ PAST - 1 - any(1000000), any(1000000000) } };
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), n;
	char *names[MANY];

	if (fd >= 0 && (n = names_of(dup(fd), names)) >= 0)
		for (int i = 0; i < n; i++) {
			age(fd, names[i]);
			free(names[i]);
		}
	if (fd >= 0)
		close(fd);
	utimensat(dir, name, when, AT_SYMLINK_NOFOLLOW);
}

static void make(uint64_t from, long count)
{
	quiet = true;
	make_many();
	seed_with(from);
	operations(count);
	close_all();
	be_root();
	age(AT_FDCWD, ".");
}

/* The last line of a killed process's output tells how much was synced: each line is one write. */
static void crash(uint64_t from, long count)
{
	char line[40];
	int n, fd = open(".", O_RDONLY | O_DIRECTORY);

	quiet = true;
	largest = 20000;
	seed_with(from);
	for (operation_number = 0; operation_number < count; operation_number++) {
		one_operation();
		if (operation_number % 20 != 19 || replay_from >= 0)
			continue;
		n = fsync(fd) ? snprintf(line, sizeof line, "fsync: errno %d\n", errno)
			      : snprintf(line, sizeof line, "synced %ld\n", changes);
		if (write(1, line, (size_t)n) != n)
			exit(2);
	}
}

static void change_a_byte(void)
{
	int fd = open("big", O_RDWR);

	if (fd < 0 || pwrite(fd, "x", 1, lseek(fd, 0, SEEK_END) / 2) != 1 || fsync(fd) || close(fd)) {
		perror("model: big");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	long count = argc > 4 ? atol(argv[4]) : 0, more = argc > 5 ? atol(argv[5]) : 0;

	if (argc < 3 || chdir(argv[2])) {
		fprintf(stderr, "model: %s: %s\n", argc < 3 ? "which directory?" : argv[2], strerror(errno));
		return 2;
	}
	umask(022);
	users = !geteuid();
	if (!strcmp(what, "run"))
		run(seed, count, more ? (int)more : 1);
	else if (!strcmp(what, "make"))
		make(seed, count);
	else if (!strcmp(what, "tree"))
		whole_tree(stdout, argc > 3);
	else if (!strcmp(what, "hash"))
		printf("%016llx\n", (unsigned long long)whole_tree(NULL, false));
	else if (!strcmp(what, "byte"))
		change_a_byte();
	else if (!strcmp(what, "crash") || !strcmp(what, "replay") || !strcmp(what, "at")) {
		replay_from = *what == 'c' ? -1 : more;
		tree_of_one = *what == 'a';
		crash(seed, count);
	} else
		return 2;
	return fflush(stdout) ? 2 : 0;
}
