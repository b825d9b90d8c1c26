/*
 * Writing the log. Records gather in one buffer while another is hashed, signed and written: who
 * fills a buffer writes it, the others go on. The order of records is the order in which the calls
 * returned to the grate.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/options.h>
#include <monocypher-ed25519.h>
#include <monocypher.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "witness.h"

/* Everything of a block lies side by side: one write each. */
struct buffer {
	struct block block;
	uint8_t records[BLOCK_SIZE + sizeof(struct seal)];
};

static struct buffer buffers[2];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER; /* current, and what is in it */
static pthread_mutex_t writing =
    PTHREAD_MUTEX_INITIALIZER; /* the other buffer, the files, the chain; taken after `adding` */
static struct buffer *current = &buffers[0];
static uint64_t records, blocks;

static struct start start;
static uint8_t secret[64], hash[HASH];
static int file = -1, head = -1;
static bool broken, ended;

static bool write_all(int fd, const void *from, size_t size)
{
	const char *at = from;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static int create(const char *path, const char *ending)
{
	int fd = lind_open_file(path, ending, O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0600);

	path = lind_file_name(path);
	if (fd < 0 && errno == EEXIST)
		lind_die("%s%s: exists; a log is never overwritten, so name a new file", path, ending ? ending : "");
	if (fd < 0)
		lind_die("%s%s: %s", path, ending ? ending : "", strerror(errno));
	return fd;
}

void log_open(const char *path, const uint8_t seed[32])
{
	struct timespec now;
	uint8_t copy[32];

	memcpy(copy, seed, sizeof copy);
	crypto_ed25519_key_pair(secret, start.key, copy);
	memcpy(start.magic, "LINDWIT1", 8);
	clock_gettime(CLOCK_REALTIME, &now);
	start.time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (getrandom(start.id, sizeof start.id, 0) != sizeof start.id)
		lind_die("cannot get random numbers: %s", strerror(errno));
	file = create(path, NULL);
	head = create(path, ".head");
	fcntl(head, F_SETFL, 0);
	chain_start(&start, hash);
	if (!write_all(file, &start, sizeof start))
		lind_die("%s: %s", lind_file_name(path), strerror(errno));
}

/* `writing` is held. */
static void write_block(struct buffer *b)
{
	struct statement statement;
	struct head signed_head;
	struct seal seal;
	size_t size = b->block.size;

	memcpy(b->block.magic, "BLCK", 4);
	chain_block(hash, &start, &b->block, b->records, &statement);
	memcpy(seal.hash, hash, HASH);
	crypto_ed25519_sign(seal.signature, secret, (const uint8_t *)&statement, sizeof statement);
	memcpy(b->records + size, &seal, sizeof seal);
	signed_head.statement = statement;
	memcpy(signed_head.signature, seal.signature, SIGNATURE);
	if (!write_all(file, b, sizeof b->block + size + sizeof seal) ||
	    pwrite(head, &signed_head, sizeof signed_head, (off_t)(b->block.number % 2 * sizeof signed_head)) !=
		sizeof signed_head) {
		lind_log("the log cannot be written: %s; calls that belong in it fail from now on", strerror(errno));
		__atomic_store_n(&broken, true, __ATOMIC_RELEASE);
	}
	b->block.size = b->block.count = 0;
}

/* Puts the other buffer in place of the current one, and gives that away. `adding` is held;
 * `writing` is, too, afterwards. */
static struct buffer *take(bool last)
{
	struct buffer *full = current;

	pthread_mutex_lock(&writing);
	current = full == &buffers[0] ? &buffers[1] : &buffers[0];
	full->block.number = blocks++;
	full->block.first = records;
	full->block.last = last;
	records += full->block.count;
	return full;
}

bool log_takes(void)
{
	return !__atomic_load_n(&broken, __ATOMIC_ACQUIRE) && !__atomic_load_n(&ended, __ATOMIC_ACQUIRE);
}

bool log_add(const struct record *record, const uint64_t *arguments, const void *texts, size_t texts_size)
{
	struct buffer *full = NULL;
	uint8_t *to;

	pthread_mutex_lock(&adding);
	if (!log_takes()) {
		pthread_mutex_unlock(&adding);
		return false;
	}
	if (current->block.size + record->size > BLOCK_SIZE)
		full = take(false);
	to = current->records + current->block.size;
	memcpy(to, record, sizeof *record);
	memcpy(to + sizeof *record, arguments, record->arguments * sizeof *arguments);
	memcpy(to + sizeof *record + record->arguments * sizeof *arguments, texts, texts_size);
	current->block.size += record->size;
	current->block.count++;
	pthread_mutex_unlock(&adding);
	if (full) {
		write_block(full);
		pthread_mutex_unlock(&writing);
	}
	return true;
}

void log_flush(bool last)
{
	struct buffer *full;

	pthread_mutex_lock(&adding);
	if (ended || (!current->block.count && !last)) {
		pthread_mutex_unlock(&adding);
		return;
	}
	__atomic_store_n(&ended, last, __ATOMIC_RELEASE);
	full = take(last);
	pthread_mutex_unlock(&adding);
	write_block(full);
	pthread_mutex_unlock(&writing);
	if (last)
		crypto_wipe(secret, sizeof secret);
}

static void *watch(void *x)
{
	const struct timespec quarter = { .tv_nsec = 250000000 };

	for (;;) {
		nanosleep(&quarter, NULL);
		log_flush(false);
	}
	return x;
}

void log_watch(void)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, watch, NULL);

	if (r)
		lind_die("cannot start a thread: %s", strerror(r));
}
