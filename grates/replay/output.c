/* Writes to standard output and standard error: numbered in a recording, and made in that order in
 * a replay. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>
#include "replay.h"

static struct stream {
	pthread_mutex_t lock;
	pthread_cond_t next;
	uint32_t turn;
} streams[2] = { { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 },
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 } };

/* Others that write to the same stream wait for it, too, where it takes nothing: they would not be
 * written before. */
int64_t output_record(const struct lind_call *c, int which, uint32_t *turn)
{
	struct stream *stream = &streams[which - 1];
	int64_t result;

	pthread_mutex_lock(&stream->lock);
	result = lind_forward(c);
	if (result > 0)
		*turn = ++stream->turn;
	pthread_mutex_unlock(&stream->lock);
	return result;
}

static void put(int fd, const char *at, size_t length)
{
	while (length) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		/* Nobody reads it: the program has been told that somebody did. */
		if (n <= 0)
			return;
		at += n;
		length -= (size_t)n;
	}
}

static void put_from(int fd, struct lind_arg at, uint64_t length)
{
	char part[16384];

	while (length) {
		size_t step = length < sizeof part ? (size_t)length : sizeof part;

		if (lind_read(at, part, step))
			return;
		put(fd, part, step);
		at = lind_at(at, step);
		length -= step;
	}
}

static void put_vector(int fd, struct lind_arg at, uint64_t count, uint64_t length)
{
	struct {
		uint32_t base, length;
	} one;

	for (uint64_t i = 0; i < count && i < 1024 && length; i++) {
		if (lind_read(lind_at(at, i * sizeof one), &one, sizeof one))
			return;
		if (one.length > length)
			one.length = (uint32_t)length;
		put_from(fd, (struct lind_arg){ one.base, at.cage }, one.length);
		length -= one.length;
	}
}

void output_again(const struct lind_call *c, const struct record *r)
{
	int fd = r->flags & ON_STDOUT ? 1 : 2;
	struct stream *stream = &streams[fd - 1];

	if (r->result <= 0 || !(r->flags & (ON_STDOUT | ON_STDERR)))
		return;
	pthread_mutex_lock(&stream->lock);
	while (stream->turn + 1 < r->turn)
		pthread_cond_wait(&stream->next, &stream->lock);
	if (c->nr == SYS_writev || c->nr == SYS_pwritev || c->nr == SYS_pwritev2)
		put_vector(fd, c->args[1], c->args[2].value, (uint64_t)r->result);
	else
		put_from(fd, c->args[1], (uint64_t)r->result);
	stream->turn = r->turn;
	pthread_cond_broadcast(&stream->next);
	pthread_mutex_unlock(&stream->lock);
}
