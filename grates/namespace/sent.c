/* The files that were sent while they were inside. They stay known: a message may wait for as long as its socket is open. */
#include <stdlib.h>
#include <sys/stat.h>
#include "namespace.h"

static struct { uint64_t dev, ino; } *sent;
static size_t sent_room;
static atomic_size_t sent_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool identify(struct lind_arg fd, struct stat *st)
{
	struct lind_arg none = { 0, fd.cage };

	return lind_call(SYS_fstat, fd.cage, fd, lind_mine(st), none, none, none, none) >= 0;
}

bool anything_sent(void)
{
	return atomic_load(&sent_count);
}

/* The lock is held. */
static bool known(const struct stat *st)
{
	for (size_t i = 0; i < sent_count; i++)
		if (sent[i].dev == st->st_dev && sent[i].ino == st->st_ino)
			return true;
	return false;
}

bool was_sent(const struct stat *st)
{
	bool yes;

	pthread_mutex_lock(&lock);
	yes = known(st);
	pthread_mutex_unlock(&lock);
	return yes;
}

static bool make_room(void)
{
	size_t room = sent_room ? 2 * sent_room : 64;
	void *more = sent_count < sent_room ? sent : realloc(sent, room * sizeof *sent);

	if (!more)
		return false;
	sent_room = sent_count < sent_room ? sent_room : room;
	sent = more;
	return true;
}

int remember(const struct stat *st)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (known(st))
		;
	else if (!make_room())
		r = -ENOMEM;
	else {
		sent[sent_count].dev = st->st_dev;
		sent[sent_count].ino = st->st_ino;
		sent_count++;
	}
	pthread_mutex_unlock(&lock);
	return r;
}
