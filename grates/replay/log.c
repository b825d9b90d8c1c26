/* Writing a record: each cage collects its own, and a full block is compressed and appended. */
#include <errno.h>
#include <lz4.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include "replay.h"

static int file = -1;
static const char *name;
static uint64_t numbers, begun, length_written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool over;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The file has its head already. */
const char *log_open(const char *value)
{
	off_t end;

	name = value;
	if ((file = lind_open_file(value, NULL, O_RDWR, 0)) < 0 || (end = lseek(file, 0, SEEK_END)) < 0)
		return strerror(errno);
	if (!end)
		return "has no head: `lind-boot record -o FILE` makes records";
	length_written = (uint64_t)end;
	begun = now();
	return NULL;
}

/* The record cannot go on, and neither can the programs. */
__attribute__((format(printf, 1, 2))) _Noreturn static void fail(const char *format, ...)
{
	char why[512];
	va_list list;

	va_start(list, format);
	vsnprintf(why, sizeof why, format, list);
	va_end(list);
	lind_log("%s; the recording ends here, and so do the programs", why);
	living_end(125);
}

static void append(const void *data, size_t length)
{
	const char *at = data;

	length_written += length;
	while (length) {
		ssize_t n = write(file, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("%s: %s", lind_file_name(name), strerror(n < 0 ? errno : ENOSPC));
		at += n;
		length -= (size_t)n;
	}
}

static void append_block(struct block *block, const void *data)
{
	block->magic = BLOCK_MAGIC;
	block->sum = crc32_of(0, data, block->packed);
	block->check = crc32_of(0, block, offsetof(struct block, check));
	pthread_mutex_lock(&lock);
	if (!over) {
		append(block, sizeof *block);
		append(data, block->packed);
	}
	pthread_mutex_unlock(&lock);
}

void log_block(uint32_t kind, uint32_t cage, uint64_t first, const void *data, size_t length)
{
	struct block block = {
		.kind = kind, .cage = cage, .raw = (uint32_t)length, .packed = (uint32_t)length, .first = first
	};

	append_block(&block, data);
}

void log_numbered(uint64_t count)
{
	__atomic_store_n(&numbers, count, __ATOMIC_RELAXED);
}

uint64_t log_number(void)
{
	return __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
}

/* A client's records are its own thread's, but at the end of the recording. */
static void hold(struct client *client)
{
	while (__atomic_exchange_n(&client->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void release(struct client *client)
{
	__atomic_store_n(&client->lock, 0, __ATOMIC_RELEASE);
}

static void flush(struct client *client)
{
	int room = LZ4_compressBound((int)client->used), packed;
	struct block block = {
		.kind = BLOCK_CALLS, .cage = client->cage, .raw = (uint32_t)client->used, .first = client->first
	};
	char *to;

	if (!client->used)
		return;
	if (!(to = malloc((size_t)room)))
		fail("out of memory");
	packed = LZ4_compress_default(client->data, to, (int)client->used, room);
	if (packed <= 0)
		fail("%s: cannot compress %zu bytes", lind_file_name(name), client->used);
	block.packed = (uint32_t)packed;
	append_block(&block, to);
	free(to);
	client->used = 0;
}

static void make_room(struct client *client, size_t length)
{
	size_t size = BLOCK_SIZE;

	if (client->used)
		flush(client);
	while (size < length)
		size *= 2;
	if (size > client->size) {
		free(client->data);
		if (!(client->data = malloc(size)))
			fail("out of memory");
		client->size = size;
	}
}

void log_add(struct client *client, const struct record *record, const void *more)
{
	size_t length = STRIDE(record);

	if (length > RECORD_MOST)
		fail("a call has given %zu bytes, more than a record can hold", length);
	hold(client);
	if (!client->closed) {
		if (client->size - client->used < length)
			make_room(client, length);
		if (!client->used)
			client->first = record->number;
		memcpy(client->data + client->used, record, sizeof *record);
		if (record->bytes) {
			memset(client->data + client->used + length - 8, 0, 8);
			memcpy(client->data + client->used + sizeof *record, more, record->bytes);
		}
		client->used += length;
	}
	release(client);
}

/* Nothing is added to it any more. */
void log_close(struct client *client)
{
	hold(client);
	if (!client->closed)
		flush(client);
	client->closed = true;
	release(client);
}

void log_end(bool whole, const char *reason)
{
	struct ending ending = {
		.calls = __atomic_load_n(&numbers, __ATOMIC_RELAXED), .nanoseconds = now() - begun, .whole = whole
	};
	struct bytes all = { 0 };

	bytes_add(&all, &ending, sizeof ending);
	bytes_add(&all, reason, strlen(reason) + 1);
	log_block(BLOCK_END, 0, ending.calls, all.data, all.used);
	bytes_free(&all);
	pthread_mutex_lock(&lock);
	over = true;
	pthread_mutex_unlock(&lock);
	lind_log("%s: %llu calls in %llu kB; it holds all that the programs read, passwords and keys too",
	    lind_file_name(name), (unsigned long long)ending.calls, (unsigned long long)(length_written + 1023) / 1024);
}
