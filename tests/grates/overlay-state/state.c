/*
 * The store of the overlay against a naive model, and against failures of power.
 *
 *	state model SEED STEPS	random changes, snapshots, forks, rollbacks, reopening the state
 *	state crash SEED STEPS	the power fails at each write of a recorded run; the state opens
 *	state many		1,000 snapshots, 100 forks
 *	state rewrite		a large file, without waiting for the disk
 *	state damage SEED	bytes of a state are changed: it may say so, or show what it likes, but ends
 *	state links NAME...	in a state that is a directory, what is in place of a data file
 *	state file NAME		a state for others to look at
 *	state open NAME [LOWER]	opens what may be none, and says what is wrong with it
 *
 * With FOLDER=, an empty directory, in the environment the state has its data files there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <errno.h>
#include "layers.h"
#include "recorded.h"
#include "state.h"

#define INODES    6
#define DIRS      3
#define NAMES     4
#define CHUNKS    2
#define BLOCKS    (CHUNKS * (int)(STORE_CHUNK / STORE_BLOCK))
#define SNAPSHOTS 40
#define SECTOR    512

#define CHECK(what) \
	do { \
		if (!(what)) \
			fail(__LINE__, #what); \
	} while (0)

/* The visible state. */
struct view {
	struct {
		bool there;
		uint32_t mode;
		int64_t size;
		bool has_origin;
	} node[INODES];
	uint64_t name[DIRS][NAMES];  /* 0: removed; 1: as below; else an inode's number */
	uint64_t block[INODES][BLOCKS];  /* 0: not stored; else a hash */
};

static uint64_t seed, state_of_random;
static struct store *store;
static int db, wal, folder = -1; /* folder: of data files, if it has any */

static void fail(int line, const char *what)
{
	printf("line %d: %s is not so (seed %llu): %s\n", line, what, (unsigned long long)seed,
	    store ? store_problem(store) : "");
	exit(1);
}

static unsigned below(unsigned limit)
{
	state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((state_of_random >> 33) % limit);
}

static uint64_t hash(const uint8_t *bytes, size_t size)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < size; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		h = (h ^ word) * 1099511628211u;
		h ^= h >> 29;
	}
	return h | 1;
}

static uint64_t ino_of(int i)
{
	return i < INODES / 2 ? 100 + (uint64_t)i : STORE_FIRST_INO + (uint64_t)i;
}

static void open_state(const char *head)
{
	int r = store_open(&store, dup(db), dup(wal), folder < 0 ? -1 : dup(folder), "/lower", head);

	if (r)
		printf("store_open: %d, %s\n", r, store_problem(store));
	CHECK(!r);
}

static int truncateat(int at, const char *name, off_t size)
{
	int fd = openat(at, name, O_RDWR), r = ftruncate(fd, size);

	return close(fd) ? -1 : r;
}

static void close_state(void)
{
	CHECK(!store_close(store));
	store = NULL;
}

static int take_name(void *to, const char *name, uint64_t ino)
{
	uint64_t *names = to;

	if (name[0] < 'a' || name[0] >= 'a' + NAMES || name[1])
		return -EINVAL;
	names[name[0] - 'a'] = ino;
	return 0;
}

/* Reads the visible state from the store; returns an error of the store. */
static int look(struct view *seen)
{
	static uint8_t bytes[STORE_CHUNK];
	struct store_node node;
	int r;

	memset(seen, 0, sizeof *seen);
	for (int i = 0; i < INODES; i++) {
		if ((r = store_get(store, ino_of(i), &node)) < 0)
			return r;
		if (r) {
			CHECK(store_has(store, ino_of(i)));
			seen->node[i].there = true;
			seen->node[i].mode = node.mode;
			seen->node[i].size = node.size;
			seen->node[i].has_origin = node.origin != NULL;
		}
		for (int c = 0; c < CHUNKS; c++) {
			memset(bytes, 0xee, sizeof bytes);
			if ((r = store_read(store, ino_of(i), (uint64_t)c, bytes)) < 0)
				return r;
			for (int b = 0; b < 16; b++) {
				if (r & 1 << b)
					seen->block[i][c * 16 + b] = hash(bytes + b * STORE_BLOCK, STORE_BLOCK);
				else
					CHECK(bytes[b * STORE_BLOCK] == 0xee &&
					    bytes[b * STORE_BLOCK + STORE_BLOCK - 1] == 0xee);
			}
		}
	}
	for (int d = 0; d < DIRS; d++) {
		for (int n = 0; n < NAMES; n++)
			seen->name[d][n] = 1;
		if ((r = store_names(store, 10 + (uint64_t)d, take_name, seen->name[d])))
			return r;
	}
	return 0;
}

static bool same(const struct view *seen, const struct view *wanted)
{
	return !memcmp(seen->node, wanted->node, sizeof seen->node) &&
	    !memcmp(seen->block, wanted->block, sizeof seen->block) &&
	    !memcmp(seen->name, wanted->name, sizeof seen->name);
}

static void put(struct view *view, int i)
{
	struct store_node node = {
		.ino = ino_of(i), .mode = 0100000 | below(01000), .nlink = 1, .size = below(100000), .origin_size = 77
	};

	if (below(2)) {
		node.origin = "some/path";
		node.stamp.size = 5;
	}
	if (below(3) == 0) {
		node.xattrs = "user.a\0\1\0\0\0b";
		node.xattrs_size = 12;
	}
	CHECK(!store_put(store, &node));
	view->node[i].there = true;
	view->node[i].mode = node.mode;
	view->node[i].size = node.size;
	view->node[i].has_origin = node.origin != NULL;
}

static void write_blocks(struct view *view, int i)
{
	static uint8_t bytes[STORE_CHUNK];
	int c = (int)below(CHUNKS);
	uint16_t mask = (uint16_t)(below(4) ? 1u << below(16) : below(2) ? below(65536) : 65535);

	for (int b = 0; b < 16; b++) {
		uint8_t *block = bytes + b * STORE_BLOCK;
		unsigned length = below(3) == 0 ? 0 : below(3) ? below(100) : STORE_BLOCK;

		memset(block, 0, STORE_BLOCK);
		for (unsigned at = 0; at < length; at++)
			block[at] = (uint8_t)below(256);
		if (mask & 1u << b)
			view->block[i][c * 16 + b] = hash(block, STORE_BLOCK);
	}
	CHECK(!store_write(store, ino_of(i), (uint64_t)c, mask, bytes));
}

static void cut(struct view *view, int i, int64_t size)
{
	for (int b = 0; b < BLOCKS; b++)
		if ((int64_t)b * STORE_BLOCK >= size)
			view->block[i][b] = 0;
	CHECK(!store_cut(store, ino_of(i), size));
}

static void change(struct view *view)
{
	int i = (int)below(INODES), d = (int)below(DIRS), n = (int)below(NAMES);
	char name[2] = { (char)('a' + n), 0 };

	switch (below(8)) {
	case 0:
		put(view, i);
		break;
	case 1:
	case 2:
	case 3:
		if (!view->node[i].there)
			put(view, i);
		write_blocks(view, i);
		break;
	case 4:
		if (view->node[i].there)
			cut(view, i, below(3) ? below(BLOCKS * STORE_BLOCK) : below(BLOCKS + 1) * STORE_BLOCK);
		break;
	case 5:
		CHECK(!store_forget(store, ino_of(i)));
		memset(&view->node[i], 0, sizeof view->node[i]);
		memset(view->block[i], 0, sizeof view->block[i]);
		break;
	case 6:
		CHECK(!store_name(store, 10 + (uint64_t)d, name, view->name[d][n] = below(3) ? ino_of(i) : 0));
		break;
	case 7:
		CHECK(!store_unname(store, 10 + (uint64_t)d, name));
		view->name[d][n] = 1;
		break;
	}
}

static void empty(struct view *view)
{
	memset(view, 0, sizeof *view);
	for (int d = 0; d < DIRS; d++)
		for (int n = 0; n < NAMES; n++)
			view->name[d][n] = 1;
}

static void check_view(const struct view *wanted)
{
	struct view seen;

	CHECK(!look(&seen));
	CHECK(same(&seen, wanted));
}

static struct view heads[4], snapshots[SNAPSHOTS];
static const char *const head_names[4] = { "main", "second", "third", "fourth" };

/* The size of the data files on the disk. */
static int64_t data_on_disk(void)
{
	int64_t sum = 0;
	uint64_t *inos;
	size_t count;
	char name[32];

	CHECK(!data_list(store->data, &inos, &count));
	for (size_t i = 0; i < count; i++) {
		off_t start, end = 0;
		int fd;

		snprintf(name, sizeof name, "%llu", (unsigned long long)inos[i]);
		CHECK((fd = openat(folder, name, O_RDONLY)) >= 0);
		for (; (start = lseek(fd, end, SEEK_DATA)) >= 0 && (end = lseek(fd, start, SEEK_HOLE)) >= 0;
		    sum += end - start)
			;
		close(fd);
	}
	free(inos);
	return sum;
}

/* Of a state that was closed or opened just now: each block of a data file is named by a row. */
static void check_no_garbage(void)
{
	sqlite3_stmt *rows;
	int64_t blocks = 0;

	if (folder < 0)
		return;
	CHECK(!sqlite3_prepare_v2(
	    store->db, "select held & ~zeros from blocks where typeof(bytes) = 'text'", -1, &rows, NULL));
	while (sqlite3_step(rows) == SQLITE_ROW)
		blocks += __builtin_popcount((unsigned)sqlite3_column_int(rows, 0));
	sqlite3_finalize(rows);
	CHECK(data_on_disk() == blocks * STORE_BLOCK);
}

static void model(unsigned steps)
{
	unsigned heads_count = 1, snapshots_count = 0, head = 0;

	empty(&heads[0]);
	open_state(NULL);
	for (unsigned step = 0; step < steps; step++) {
		unsigned what = below(40);
		char name[16];

		if (what == 0) {
			close_state();
			open_state(head_names[head = below(heads_count)]);
			check_view(&heads[head]);
		} else if (what == 1 && snapshots_count < SNAPSHOTS) {
			snprintf(name, sizeof name, "s%u", snapshots_count);
			snapshots[snapshots_count++] = heads[head];
			CHECK(!store_snapshot(store, name) && store_snapshot(store, name) == -EEXIST);
		} else if (what == 2 && snapshots_count) {
			unsigned which = below(snapshots_count);

			snprintf(name, sizeof name, "s%u", which);
			heads[head] = snapshots[which];
			CHECK(!store_rollback(store, name) && store_rollback(store, "none") == -ENOENT);
		} else if (what == 3 && heads_count < 4) {
			heads[heads_count] = heads[head];
			CHECK(!store_fork(store, head_names[heads_count++]));
		} else if (what == 4) {
			check_view(&heads[head]);
		} else if (what == 5) {
			CHECK(!store_commit(store, below(2)));
		} else {
			change(&heads[head]);
		}
	}
	close_state();
	for (head = 0; head < heads_count; head++) {
		open_state(head_names[head]);
		check_no_garbage();
		check_view(&heads[head]);
		close_state();
	}
}

/* The committed views, and between which deeds each was committed. */
static struct committed {
	size_t begun, done;
	bool durable;
	struct view view;
} *committed;
static size_t commits;

static void note_commit(const struct view *view, size_t begun, bool durable)
{
	committed = realloc(committed, (commits + 1) * sizeof *committed);
	committed[commits++] = (struct committed){ begun, recorded_count, durable, *view };
}

static void record_run(unsigned steps)
{
	struct view view;

	empty(&view);
	record(db, wal, folder);
	/* The descriptors themselves: a duplicate would not be known. */
	CHECK(!store_open(&store, db, wal, folder, "/lower", NULL));
	note_commit(&view, 0, false);
	CHECK(!store_exec(store, "pragma wal_autocheckpoint = 30"));
	for (unsigned step = 0; step < steps; step++) {
		size_t begun = recorded_count;
		bool durable = below(3) == 0;

		for (unsigned i = below(6); i--;)
			change(&view);
		/* The second of a name is refused. */
		if (below(20) == 0) {
			store_snapshot(store, step % 2 ? "odd" : "even");
			durable = true;
		}
		CHECK(!store_commit(store, durable));
		note_commit(&view, begun, durable);
	}
	record_stop();
}

static void crash_at(size_t count, size_t torn, uint64_t lost)
{
	size_t least = 0, i;
	struct view seen;
	int r;

	for (i = 0; i < commits; i++)
		if (committed[i].durable && committed[i].done <= count - (torn != 0))
			least = i;
	replay(count, torn, lost, db, wal, folder);
	r = store_open(&store, dup(db), dup(wal), folder < 0 ? -1 : dup(folder), "/lower", NULL);
	if (r) {
		printf("after %zu deeds, %zu bytes of the last missing, loss %d: %s\n", count, torn, lost != 0,
		    store_problem(store));
		exit(1);
	}
	CHECK(!look(&seen));
	for (i = least; i < commits && (i == least || committed[i].begun <= count); i++)
		if (same(&seen, &committed[i].view))
			break;
	if (i == commits || (i != least && committed[i].begun > count)) {
		printf(
		    "after %zu deeds, %zu bytes of the last missing, loss %d: none of the states that were committed (seed %llu)\n",
		    count, torn, lost != 0, (unsigned long long)seed);
		exit(1);
	}
	check_no_garbage();
	CHECK(!store_close(store));
	store = NULL;
}

/* Of a write that the power ended. The log tells by sums how much of it is there; of the file
 * itself a disk writes whole sectors. */
static size_t missing(const struct recorded *last)
{
	size_t size = 1 + below((unsigned)last->size), left = last->size - size;

	return last->file ? size : size + left % SECTOR;
}

static void crash(unsigned steps)
{
	size_t points = 0;

	if (folder >= 0)
		folder = open(getenv("FOLDER"), O_RDONLY | O_DIRECTORY);
	record_run(steps);
	db = memfd_create("state", 0);
	wal = memfd_create("log", 0);
	if (folder >= 0)
		folder = open(getenv("FOLDER"), O_RDONLY | O_DIRECTORY);
	for (size_t count = 0; count <= recorded_count; count++) {
		crash_at(count, 0, 0);
		crash_at(count, 0, seed + count + 1);
		points += 2;
		if (count && recorded[count - 1].deed == WRITE_BYTES) {
			crash_at(count, missing(&recorded[count - 1]), 0);
			points++;
		}
	}
	printf("%zu commits, %zu deeds, %zu failures of power\n", commits, recorded_count, points);
}

static void many(void)
{
	static uint8_t bytes[STORE_CHUNK];
	struct store_node node = { .ino = ino_of(5), .mode = 0100644, .nlink = 1, .size = 10 << 20 };
	struct stat st;
	char name[16];

	open_state(NULL);
	CHECK(!store_put(store, &node));
	for (uint64_t c = 0; c < 160; c++) {
		memset(bytes, 1 + (int)c, sizeof bytes);
		CHECK(!store_write(store, node.ino, c, 0xffff, bytes));
	}
	for (int i = 0; i < 1000; i++) {
		bytes[0] = (uint8_t)i;
		snprintf(name, sizeof name, "s%d", i);
		CHECK(!store_write(store, node.ino, (uint64_t)i % 160, 1, bytes) && !store_snapshot(store, name));
	}
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "f%d", i);
		CHECK(!store_fork(store, name));
	}
	close_state();
	CHECK(!fstat(db, &st));
	/* Ten MiB, and a block for each snapshot. */
	CHECK(st.st_size < (folder < 0 ? 16 << 20 : 2 << 20));
	open_state("f50");
	CHECK(store_read(store, node.ino, 159, bytes) == 0xffff && bytes[0] == (uint8_t)959 &&
	    bytes[STORE_CHUNK - 1] == 160);
	close_state();
	open_state(NULL);
	CHECK(!store_rollback(store, "s3"));
	CHECK(store_read(store, node.ino, 3, bytes) == 0xffff && bytes[0] == 3 &&
	    store_read(store, node.ino, 4, bytes) == 0xffff && bytes[0] == 5);
	close_state();
}

/* A run that is never asked to wait for the disk writes the same file again and again. */
static void rewrite(void)
{
	static uint8_t bytes[STORE_CHUNK];
	struct store_node node = { .ino = ino_of(5), .mode = 0100644, .nlink = 1, .size = 10 << 20 };

	open_state(NULL);
	CHECK(!store_put(store, &node));
	for (int i = 1; i < 30; i++) {
		memset(bytes, i, sizeof bytes);
		for (uint64_t c = 0; c < 160; c++)
			CHECK(!store_write(store, node.ino, c, 0xffff, bytes));
		CHECK(!store_commit(store, false));
		/* It twice, what may wait, and as much as one commit adds to that. */
		CHECK(folder < 0 || data_on_disk() <= (20 + 32 + 10) << 20);
	}
	close_state();
	open_state(NULL);
	check_no_garbage();
	close_state();
}

/* Writes rows as an attacker would who knows the tables. */
static void damage_rows(void)
{
	static const char *const slots[] = { "", "0", "-", "0-", "0-15,", "1,1", "9-3", "4294967295", "4294967296",
		"99999999999999999999999", "0-4294967295", "1000000-1000015", "x", "0 1", ",1", "7-22", "0-15,0-15" };
	sqlite3_stmt *set;

	open_state(NULL);
	CHECK(!sqlite3_prepare_v2(store->db, "update blocks set bytes = ?1 where rowid % 5 = ?2", -1, &set, NULL));
	for (int i = 0; i < 5; i++) {
		sqlite3_bind_text(set, 1, slots[below(sizeof slots / sizeof *slots)], -1, SQLITE_STATIC);
		sqlite3_bind_int(set, 2, i);
		CHECK(sqlite3_step(set) == SQLITE_DONE);
		sqlite3_reset(set);
	}
	sqlite3_finalize(set);
	close_state();
}

static void damage(void)
{
	struct view view;
	struct stat st;

	empty(&view);
	open_state(NULL);
	for (int i = 0; i < 60; i++)
		change(&view);
	close_state();
	CHECK(!fstat(db, &st));
	/* As after a run that was killed: then data files are compared with the rows. */
	CHECK(folder < 0 || pwrite(wal, "x", 1, 0) == 1);
	if (folder >= 0 && below(2))
		damage_rows();
	else
		for (unsigned i = 1 + below(20); i--;) {
			uint8_t byte = (uint8_t)below(256);

			CHECK(pwrite(db, &byte, 1, below((unsigned)st.st_size)) == 1);
		}
	if (!store_open(&store, dup(db), dup(wal), folder < 0 ? -1 : dup(folder), "/lower", NULL) && !look(&view)) {
		change(&view);
		store_commit(store, true);
	}
	store_close(store);
}

/* In place of a data file is something else, or nothing. */
static void expect_refusal(const char *words)
{
	static uint8_t bytes[STORE_CHUNK];
	struct store_node node;

	open_state(NULL);
	CHECK(store_get(store, ino_of(5), &node) == 1);
	CHECK(store_read(store, ino_of(5), 1, bytes) == -EIO && strstr(store_problem(store), words));
	memset(bytes, 7, sizeof bytes);
	if (store_write(store, ino_of(5), 2, 0xffff, bytes))
		CHECK(strstr(store_problem(store), words));
	store_close(store);
	store = NULL;
}

static void links(const char *victim)
{
	static uint8_t bytes[STORE_CHUNK];
	struct store_node node = { .ino = ino_of(5), .mode = 0100644, .nlink = 1, .size = 10 << 20 };
	char name[32];
	struct stat st;

	snprintf(name, sizeof name, "%llu", (unsigned long long)node.ino);
	memset(bytes, 1, sizeof bytes);
	open_state(NULL);
	CHECK(!store_put(store, &node) && !store_write(store, node.ino, 1, 0xffff, bytes));
	close_state();
	CHECK(!fstatat(folder, name, &st, 0) && st.st_size == 2 * STORE_CHUNK && st.st_blocks * 512 == STORE_CHUNK);
	CHECK(!truncateat(folder, name, STORE_CHUNK + 5000));
	expect_refusal("is too short");
	CHECK(!unlinkat(folder, name, 0) && !symlinkat(victim, folder, name));
	expect_refusal("not a regular file with one name");
	CHECK(!unlinkat(folder, name, 0) && !linkat(AT_FDCWD, victim, folder, name, 0));
	expect_refusal("not a regular file with one name");
	CHECK(!unlinkat(folder, name, 0) && !mkfifoat(folder, name, 0600));
	expect_refusal("not a regular file with one name");
	CHECK(!unlinkat(folder, name, 0) && !mkdirat(folder, name, 0700));
	expect_refusal("not a regular file with one name");
	CHECK(!stat(victim, &st) && !st.st_size);
}

static void put_path(uint64_t ino, uint32_t mode, const char *origin)
{
	struct store_node node = { .ino = ino, .mode = mode, .nlink = 1, .origin = origin };

	CHECK(!store_put(store, &node));
}

static void open_files(const char *name)
{
	char log[256];

	snprintf(log, sizeof log, "%s-wal", name);
	db = open(name, O_RDWR | O_CREAT, 0600);
	wal = open(log, O_RDWR | O_CREAT, 0600);
	CHECK(db >= 0 && wal >= 0);
}

static void open_any(const char *name, const char *lower)
{
	open_files(name);
	printf("%s\n", store_open(&store, db, wal, -1, lower, NULL) ? store_problem(store) : "");
	store_close(store);
}

static void make_file(const char *name)
{
	open_files(name);
	open_state(NULL);
	put_path(STORE_ROOT, 040755, "");
	put_path(7, 040755, "src");
	put_path(8, 0100644, "old.txt");
	put_path(9, 040755, "kept");
	put_path(ino_of(4), 0100644, NULL);
	put_path(ino_of(5), 0100644, NULL);
	CHECK(!store_name(store, STORE_ROOT, "src", 7) && !store_name(store, STORE_ROOT, "kept", 9) &&
	    !store_name(store, 7, "a.c", ino_of(4)));
	CHECK(!store_name(store, STORE_ROOT, "made", ino_of(5)) && !store_name(store, STORE_ROOT, "old.txt", 0) &&
	    !store_name(store, 9, "new.txt", 8));
	close_state();
}

int main(int argc, char **argv)
{
	unsigned steps = argc > 3 ? (unsigned)atoi(argv[3]) : 0;

	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	state_of_random = seed * 2 + 1;
	db = memfd_create("state", 0);
	wal = memfd_create("log", 0);
	if (getenv("FOLDER"))
		CHECK((folder = open(getenv("FOLDER"), O_RDONLY | O_DIRECTORY)) >= 0);
	if (argc > 1 && !strcmp(argv[1], "model"))
		model(steps);
	else if (argc > 1 && !strcmp(argv[1], "crash"))
		crash(steps);
	else if (argc > 1 && !strcmp(argv[1], "many"))
		many();
	else if (argc > 1 && !strcmp(argv[1], "damage"))
		damage();
	else if (argc > 2 && !strcmp(argv[1], "links"))
		links(argv[2]);
	else if (argc > 1 && !strcmp(argv[1], "rewrite"))
		rewrite();
	else if (argc > 2 && !strcmp(argv[1], "file"))
		make_file(argv[2]);
	else if (argc > 2 && !strcmp(argv[1], "open"))
		open_any(argv[2], argv[3]);
	else
		return 2;
	return 0;
}
