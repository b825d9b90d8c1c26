/*
 * Resolvers' answers over TCP. Their messages follow each other in one stream, each behind its
 * length, so to know where one begins every byte has to be seen, in order. A stream is followed
 * only if that is certain: the number was made by socket(2) and never copied, one thread at a time
 * reads from it, and only by calls that are seen here. Any call that makes this uncertain ends the
 * following, and names are then not learnt from it.
 */
#include <stdlib.h>
#include <string.h>
#include "net.h"

#define MOST_STREAMS 8
#define MOST_MESSAGE 65535

struct stream {
	struct stream *next;
	int fd;
	bool reading;
	size_t have;
	uint8_t bytes[MOST_MESSAGE + 2];
};

void taint_begin(struct client *c)
{
	pthread_mutex_lock(&c->lock);
	c->changes++;
	c->changing++;
	pthread_mutex_unlock(&c->lock);
}

void taint_end(struct client *c)
{
	pthread_mutex_lock(&c->lock);
	c->changes++;
	c->changing--;
	pthread_mutex_unlock(&c->lock);
}

/* A count to compare with later; 0 while numbers are being changed. */
uint64_t stream_quiet(struct client *c)
{
	uint64_t before;

	pthread_mutex_lock(&c->lock);
	before = c->changing ? 0 : c->changes + 1;
	pthread_mutex_unlock(&c->lock);
	return before;
}

static bool quiet_since(const struct client *c, uint64_t before)
{
	return before && !c->changing && c->changes + 1 == before;
}

void stream_made(struct client *c, int fd, uint64_t before)
{
	if (fd < 0 || (size_t)fd >= sizeof c->fresh * 8)
		return;
	pthread_mutex_lock(&c->lock);
	if (quiet_since(c, before) && c->since == names_since)
		c->fresh[fd / 8] |= (uint8_t)(1 << fd % 8);
	pthread_mutex_unlock(&c->lock);
}

/* Under the lock. -1: all of them. */
static void drop(struct client *c, int fd)
{
	for (struct stream **at = &c->streams; *at;) {
		struct stream *s = *at;

		if (fd >= 0 && s->fd != fd) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free(s);
	}
	if (fd < 0)
		memset(c->fresh, 0, sizeof c->fresh);
	else if ((size_t)fd < sizeof c->fresh * 8)
		c->fresh[fd / 8] &= (uint8_t)~(1 << fd % 8);
}

void streams_drop(struct client *c, int fd)
{
	pthread_mutex_lock(&c->lock);
	drop(c, fd);
	pthread_mutex_unlock(&c->lock);
}

static bool is_fresh(const struct client *c, int fd)
{
	return fd >= 0 && (size_t)fd < sizeof c->fresh * 8 && c->fresh[fd / 8] & 1 << fd % 8;
}

/* Before the connection is made: then nothing has been read from it. Any earlier connection of
 * the socket is over. */
void stream_connected(struct client *c, int fd, unsigned proto, const struct address *a)
{
	struct stream *s;
	unsigned count = 0;
	bool fresh;

	if (!has_names)
		return;
	pthread_mutex_lock(&c->lock);
	fresh = is_fresh(c, fd);
	drop(c, fd);
	if (fresh)
		c->fresh[fd / 8] |= (uint8_t)(1 << fd % 8);
	for (s = c->streams; s; s = s->next)
		count++;
	if (fresh && proto == TCP && !a->own && is_resolver(a) && count < MOST_STREAMS && (s = malloc(sizeof *s))) {
		s->fd = fd;
		s->reading = false;
		s->have = 0;
		s->next = c->streams;
		c->streams = s;
	}
	pthread_mutex_unlock(&c->lock);
}

static struct stream *find(struct client *c, int fd)
{
	struct stream *s = c->streams;

	while (s && s->fd != fd)
		s = s->next;
	return s;
}

/* A read begins: whether it is one of a stream. Two at a time would not say which bytes came
 * first. */
bool stream_begin(struct client *c, int fd, uint64_t *before)
{
	struct stream *s;

	pthread_mutex_lock(&c->lock);
	*before = c->changing ? 0 : c->changes + 1;
	if ((s = find(c, fd)) && (s->reading || !*before)) {
		drop(c, fd);
		s = NULL;
	}
	if (s)
		s->reading = true;
	pthread_mutex_unlock(&c->lock);
	return s;
}

void stream_read(struct client *c, int fd, uint64_t before, const uint8_t *bytes, size_t length)
{
	struct stream *s;

	pthread_mutex_lock(&c->lock);
	if ((s = find(c, fd)) && !quiet_since(c, before)) {
		drop(c, fd);
		s = NULL;
	}
	if (s)
		s->reading = false;
	while (s && length) {
		size_t wanted = s->have < 2 ? 2 : 2 + ((size_t)s->bytes[0] << 8 | s->bytes[1]), n = wanted - s->have;

		n = n < length ? n : length;
		memcpy(s->bytes + s->have, bytes, n);
		s->have += n;
		bytes += n;
		length -= n;
		if (s->have > 2 && s->have == 2 + ((size_t)s->bytes[0] << 8 | s->bytes[1])) {
			names_learn(s->bytes + 2, s->have - 2);
			s->have = 0;
		} else if (s->have == 2 && !s->bytes[0] && !s->bytes[1])
			s->have = 0;
	}
	pthread_mutex_unlock(&c->lock);
}
