/*
 * Which files the programs are. A path names the file that is there when a program is started,
 * whatever name it is started by, and the file that was there when the grate began, wherever that
 * has been moved. A hash names any file with these contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "blake3.h"
#include "which.h"

#define MOST  16
#define PIECE (64u << 10)
/* A file that was written in the last so many seconds may be written again without a sign of it
 * in the file's times. */
#define SETTLED 2

static struct by_path {
	char path[PATH_MAX];
	bool found;
	int held;  /* so that no other file gets its number */
	dev_t device;
	ino_t inode;
} paths[MOST];
static size_t path_count;

static uint8_t hashes[MOST][BLAKE3_OUT_LEN];
static size_t hash_count;

const char *add_path(const char *value)
{
	const char *wrong;

	if (path_count == MOST)
		return "too many";
	if ((wrong = lind_path_clean(value, paths[path_count].path)))
		return wrong;
	path_count++;
	return NULL;
}

const char *add_hash(const char *value)
{
	if (hash_count == MOST)
		return "too many";
	if (strlen(value) != 2 * BLAKE3_OUT_LEN || value[strspn(value, "0123456789abcdef")])
		return "must be a BLAKE3 hash: 64 hexadecimal digits";
	for (size_t i = 0; i < BLAKE3_OUT_LEN; i++) {
		char pair[3] = { value[2 * i], value[2 * i + 1], 0 };

		hashes[hash_count][i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	hash_count++;
	return NULL;
}

bool any_program(void)
{
	return path_count || hash_count;
}

static bool is_script(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char mark[2];
	bool script = fd >= 0 && pread(fd, mark, 2, 0) == 2 && !memcmp(mark, "#!", 2);

	if (fd >= 0)
		close(fd);
	return script;
}

void find_programs(void)
{
	for (size_t i = 0; i < path_count; i++) {
		struct by_path *p = &paths[i];
		struct stat st;

		p->held = open(p->path, O_PATH | O_CLOEXEC);
		p->found = p->held >= 0 && !fstat(p->held, &st);
		if (p->found) {
			p->device = st.st_dev;
			p->inode = st.st_ino;
			if (is_script(p->path))
				lind_die(
				    "%s: a script, which runs as its interpreter: a rule for it would have no effect; name the interpreter",
				    p->path);
		} else
			lind_log("%s: there is no such program now", p->path);
	}
}

static bool has_path(const struct lind_place *place)
{
	for (size_t i = 0; i < path_count; i++) {
		const struct by_path *p = &paths[i];
		struct stat now;

		if (!strcmp(place->path, p->path) ||
		    (p->found && place->st.st_dev == p->device && place->st.st_ino == p->inode))
			return true;
		if (!stat(p->path, &now) && place->st.st_dev == now.st_dev && place->st.st_ino == now.st_ino)
			return true;
	}
	return false;
}

static int open_again(const struct lind_place *place)
{
	char name[40];

	snprintf(name, sizeof name, "/proc/self/fd/%d", place->object);
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool hash_of(const struct lind_place *place, uint8_t hash[BLAKE3_OUT_LEN])
{
	char *piece = malloc(PIECE);
	int fd = open_again(place);
	blake3_hasher hasher;
	ssize_t n = -1;

	blake3_hasher_init(&hasher);
	while (piece && fd >= 0 && (n = read(fd, piece, PIECE)) > 0)
		blake3_hasher_update(&hasher, piece, (size_t)n);
	blake3_hasher_finalize(&hasher, hash, BLAKE3_OUT_LEN);
	if (fd >= 0)
		close(fd);
	free(piece);
	return n == 0;
}

/* The last answers, for files that have not changed since. */
static struct answer {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	bool has;
} answers[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool answered(const struct stat *st, bool *has)
{
	const struct answer *a = &answers[st->st_ino % 64];
	bool same;

	pthread_mutex_lock(&lock);
	same = a->inode == st->st_ino && a->device == st->st_dev && a->size == st->st_size &&
	    a->changed.tv_sec == st->st_ctim.tv_sec && a->changed.tv_nsec == st->st_ctim.tv_nsec;
	*has = a->has;
	pthread_mutex_unlock(&lock);
	return same;
}

static void keep(const struct stat *st, bool has)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec - st->st_ctim.tv_sec <= SETTLED)
		return;
	pthread_mutex_lock(&lock);
	answers[st->st_ino % 64] = (struct answer){ st->st_dev, st->st_ino, st->st_size, st->st_ctim, has };
	pthread_mutex_unlock(&lock);
}

/* A file that cannot be read could be one of them. */
static bool has_hash(const struct lind_place *place)
{
	uint8_t hash[BLAKE3_OUT_LEN];
	bool has = false;

	if (!hash_count || !S_ISREG(place->st.st_mode) || answered(&place->st, &has))
		return has;
	if (!hash_of(place, hash))
		return true;
	for (size_t i = 0; i < hash_count; i++)
		has |= !memcmp(hashes[i], hash, sizeof hash);
	keep(&place->st, has);
	return has;
}

bool is_program(const struct lind_place *place)
{
	return has_path(place) || has_hash(place);
}
