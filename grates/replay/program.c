/*
 * Starting programs. A recording notes which file runs, after the first lines of scripts have been
 * followed, and a fingerprint of it. Both the recording and its replay then start that file by its
 * whole path: a replay has no scripts, and what a program finds on its stack is the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../sdk/c/core/script.h"
#include "replay.h"

#define NONE        (struct lind_arg){ 0 }
#define SIGNED      64 /* bytes at the end of compiled code: a signature over all before */
#define FINGERPRINT 160
#define KNOWN       64

/* A file that a cage has open. */
struct source {
	uint64_t cage;
	int64_t fd;
};

static int64_t read_at(const struct source *s, void *to, size_t length, uint64_t at)
{
	return lind_call(SYS_pread64, s->cage, (struct lind_arg){ (uint64_t)s->fd, s->cage }, lind_mine(to),
	    (struct lind_arg){ length, 0 }, (struct lind_arg){ at, 0 }, NONE, NONE);
}

static int64_t open_at(uint64_t cage, const char *path)
{
	return lind_call(SYS_openat, cage, (struct lind_arg){ (uint64_t)AT_FDCWD, cage }, lind_mine(path),
	    (struct lind_arg){ O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0 }, NONE, NONE, NONE);
}

static void close_it(const struct source *s)
{
	lind_call(SYS_close, s->cage, (struct lind_arg){ (uint64_t)s->fd, s->cage }, NONE, NONE, NONE, NONE, NONE);
}

static int stat_of(const struct source *s, struct stat *stat)
{
	int64_t r = lind_call(
	    SYS_fstat, s->cage, (struct lind_arg){ (uint64_t)s->fd, s->cage }, lind_mine(stat), NONE, NONE, NONE, NONE);

	return r || !S_ISREG(stat->st_mode) ? -EACCES : 0;
}

/* The fingerprints of files that were read as a whole. */
static struct known {
	struct stat stat;
	char print[FINGERPRINT];
} known[KNOWN];
static unsigned known_count;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	    !memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) &&
	    !memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim);
}

static bool is_known(const struct stat *stat, char to[FINGERPRINT])
{
	bool found = false;

	pthread_mutex_lock(&known_lock);
	for (unsigned i = 0; i < KNOWN && i < known_count && !found; i++)
		if ((found = is_unchanged(&known[i].stat, stat)))
			strcpy(to, known[i].print);
	pthread_mutex_unlock(&known_lock);
	return found;
}

static void remember(const struct stat *stat, const char *print)
{
	pthread_mutex_lock(&known_lock);
	known[known_count % KNOWN].stat = *stat;
	strcpy(known[known_count++ % KNOWN].print, print);
	pthread_mutex_unlock(&known_lock);
}

/* Compiled code ends with a signature of all of it. Of a module the sum is taken. */
static int fingerprint(const struct source *s, const char *head, char to[FINGERPRINT])
{
	unsigned char part[16384];
	struct stat stat = { 0 };
	uint64_t at = 0;
	uint32_t sum = 0;
	int64_t n;

	if (stat_of(s, &stat))
		return -EACCES;
	if (!memcmp(head,
		"\x7f"
		"ELF",
		4) &&
	    stat.st_size > SIGNED) {
		if (read_at(s, part, SIGNED, (uint64_t)stat.st_size - SIGNED) != SIGNED)
			return -EIO;
		for (int i = 0; i < SIGNED; i++)
			sprintf(to + 2 * i, "%02x", part[i]);
		return 0;
	}
	if (is_known(&stat, to))
		return 0;
	while ((n = read_at(s, part, sizeof part, at)) > 0) {
		sum = crc32_of(sum, part, (size_t)n);
		at += (uint64_t)n;
	}
	snprintf(to, FINGERPRINT, "%llu bytes %08x", (unsigned long long)at, sum);
	remember(&stat, to);
	return 0;
}

static void add_text(struct bytes *to, const char *text, size_t length)
{
	const uint16_t size = (uint16_t)length;

	bytes_add(to, &size, sizeof size);
	bytes_add(to, text, length);
}

/* The next text of a record into `to`, with a NUL; false if there is none that fits. */
static bool take_text(const char **at, const char *end, char *to, size_t room)
{
	uint16_t size;

	if ((size_t)(end - *at) < sizeof size)
		return false;
	memcpy(&size, *at, sizeof size);
	*at += sizeof size;
	if ((size_t)(end - *at) < size || size >= room)
		return false;
	memcpy(to, *at, size);
	to[size] = 0;
	*at += size;
	return true;
}

/* The whole path of `path`, which begins at the client's directory. */
static int whole_path(uint64_t cage, char path[PATH_ROOM])
{
	char folder[PATH_ROOM];
	int64_t n;

	if (path[0] == '/')
		return 0;
	n = lind_call(
	    SYS_getcwd, cage, lind_mine(folder), (struct lind_arg){ sizeof folder, 0 }, NONE, NONE, NONE, NONE);
	if (n <= 0)
		return n ? (int)n : -ENOENT;
	if (strlen(folder) + strlen(path) + 2 > PATH_ROOM)
		return -ENAMETOOLONG;
	strcat(folder, "/");
	strcat(folder, path);
	strcpy(path, folder);
	return 0;
}

/* A whole path without empty names, `.` and `..`. */
static void without_dots(const char *path, char to[PATH_ROOM])
{
	size_t used = 0;

	while (*(path += strspn(path, "/"))) {
		const size_t length = strcspn(path, "/");

		if (length == 2 && !memcmp(path, "..", 2))
			while (used && to[--used] != '/')
				;
		else if (length != 1 || *path != '.') {
			to[used++] = '/';
			memcpy(to + used, path, length);
			used += length;
		}
		path += length;
	}
	strcpy(to + used, used ? "" : "/");
}

/* The directories that a path leaves again are not there in a replay. It keeps them where a link
 * makes the shorter path lead elsewhere. */
static void shorten(const struct source *s, char path[PATH_ROOM])
{
	char shorter[PATH_ROOM];
	struct source found = { .cage = s->cage };
	struct stat one = { 0 }, other = { 0 };

	without_dots(path, shorter);
	if ((found.fd = open_at(s->cage, shorter)) < 0)
		return;
	if (!stat_of(s, &one) && !stat_of(&found, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino)
		strcpy(path, shorter);
	close_it(&found);
}

/* Programs that the record names already. */
static struct bytes named;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void name_program(uint32_t cage, const char *path, const char *print)
{
	struct bytes one = { 0 };
	bool found = false;

	bytes_add(&one, path, strlen(path) + 1);
	bytes_add(&one, print, strlen(print) + 1);
	pthread_mutex_lock(&lock);
	for (size_t at = 0; at < named.used && !found; at += strlen(named.data + at) + 1) {
		found = !strcmp(named.data + at, path) && !strcmp(named.data + at + strlen(path) + 1, print);
		at += strlen(named.data + at) + 1;
	}
	if (!found)
		bytes_add(&named, one.data, one.used);
	pthread_mutex_unlock(&lock);
	if (!found)
		log_block(BLOCK_PROGRAM, cage, 0, one.data, one.used);
	bytes_free(&one);
}

/* The call of execve as it is made: of the file, with a script's interpreter in front. */
struct started {
	struct lind_script_words words;
	struct lind_arg argv;
	char path[PATH_ROOM], script[PATH_ROOM];
};

static int64_t start(const struct lind_call *c, struct started *s)
{
	struct lind_call changed = *c;
	int64_t result;

	changed.args[0] = lind_mine(s->path);
	changed.args[1] = s->argv;
	result = lind_forward(&changed);
	lind_script_done_(&s->words);
	return result;
}

/* Puts the interpreter that `head` names in front. */
static int interpret(struct started *s, char head[SCRIPT_HEAD + 1])
{
	char *interpreter;
	int r = lind_script_(head, s->script, &s->words, &s->argv, &interpreter);

	if (r)
		return r;
	strcpy(s->path, interpreter);
	strcpy(s->script, interpreter);
	return 0;
}

/* Looks at the file: 1 for a script, whose beginning is in `head` then, 0 for a program. */
static int look(uint64_t cage, struct started *s, char head[SCRIPT_HEAD + 1], char print[FINGERPRINT])
{
	struct source source = { .cage = cage };
	int64_t n;
	int r = whole_path(cage, s->path);

	if (r)
		return r;
	n = lind_call(SYS_faccessat, cage, (struct lind_arg){ (uint64_t)AT_FDCWD, cage }, lind_mine(s->path),
	    (struct lind_arg){ X_OK, 0 }, NONE, NONE, NONE);
	if (n || (source.fd = n = open_at(cage, s->path)) < 0)
		return (int)n;
	memset(head, 0, SCRIPT_HEAD + 1);
	n = read_at(&source, head, SCRIPT_HEAD, 0);
	r = n < 0 ? (int)n : lind_is_script_(head) ? 1 : fingerprint(&source, head, print);
	if (!r)
		shorten(&source, s->path);
	close_it(&source);
	return r;
}

int64_t program_record(struct client *client, const struct lind_call *c, struct bytes *found)
{
	struct started *s = calloc(1, sizeof *s);
	char head[SCRIPT_HEAD + 1], print[FINGERPRINT] = "";
	int64_t result;
	int r = -ENOENT;

	if (!s)
		return -ENOMEM;
	s->argv = c->args[1];
	if (lind_read_string(c->args[0], s->path, PATH_MAX) > 0) {
		strcpy(s->script, s->path);
		for (int n = 0; (r = look(c->target, s, head, print)) == 1 && n <= SCRIPT_INTERPRETERS; n++) {
			add_text(found, head, strlen(head));
			if ((r = interpret(s, head)))
				break;
		}
	}
	if (r) {
		/* The kernel says why it cannot be. */
		lind_script_done_(&s->words);
		free(s);
		found->used = 0;
		result = lind_forward(c);
		if (result >= 0) {
			lind_log(
			    "cage %u has started a program that cannot be read; the recording ends here", client->cage);
			living_end(125);
		}
		return result;
	}
	add_text(found, s->path, strlen(s->path));
	add_text(found, print, strlen(print));
	name_program(client->cage, s->path, print);
	result = start(c, s);
	free(s);
	return result;
}

int64_t program_again(const struct lind_call *c, const char *found, size_t length)
{
	struct started *s = calloc(1, sizeof *s);
	struct source source = { .cage = lind_self() };
	const char *end = found + length;
	char head[SCRIPT_HEAD + 1] = "", print[FINGERPRINT] = "", now[FINGERPRINT] = "";
	int64_t result;

	if (!s)
		return -ENOMEM;
	s->argv = c->args[1];
	if (lind_read_string(c->args[0], s->script, PATH_MAX) < 0 || !take_text(&found, end, s->path, PATH_MAX))
		return -EFAULT;
	while (lind_is_script_(s->path)) {
		memcpy(head, s->path, SCRIPT_HEAD);
		if (interpret(s, head) || !take_text(&found, end, s->path, PATH_MAX))
			return -EFAULT;
	}
	if (!take_text(&found, end, print, sizeof print))
		return -EFAULT;
	if ((source.fd = open_at(source.cage, s->path)) < 0) {
		lind_log("%s, which the record starts, is not here: %s", s->path, strerror((int)-source.fd));
		living_end(125);
	}
	memset(head, 0, sizeof head);
	read_at(&source, head, SCRIPT_HEAD, 0);
	if (fingerprint(&source, head, now) || strcmp(now, print)) {
		lind_log("%s has changed since the recording; a replay needs the programs as they were", s->path);
		living_end(125);
	}
	close_it(&source);
	result = start(c, s);
	free(s);
	return result;
}
