/*
 * The files that were sent while they were inside, known again by device, inode number, kind and
 * access. They stay known: a message may wait for as long as its socket is open.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "kinds.h"
#include "sent.h"

#define NUMBERS_LOOKED_AT 1024u /* for other descriptors of a socket that turns out to be inside */

struct file {
	uint64_t dev, ino;
	uint32_t kind;  /* which one, of those without a name: they share an inode. 0 where nothing is */
	uint32_t access; /* what F_SETFL cannot change */
};

/* A table with a place for each, at the hash of its inode number or behind it; never full. */
static struct file *sent;
static size_t sent_room;
static atomic_size_t sent_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool anything_sent(void)
{
	return atomic_load(&sent_count);
}

static struct file file_of(struct lind_arg fd, const struct stat *st)
{
	int64_t open = lind_call_plain(SYS_fcntl, fd.cage, (uint32_t)fd.value, F_GETFL, 0, 0);

	return (struct file){ st->st_dev, st->st_ino, fd_lasting_kind(fd, st),
		open < 0 ? 0 : (uint32_t)open & (O_ACCMODE | O_PATH) };
}

/* Where it is, or would be. The lock is held, and there is a table. */
static struct file *place_of(struct file *table, size_t room, const struct file *f)
{
	size_t at = (size_t)(f->ino * 0x9e3779b97f4a7c15ull >> 32) % room;

	while (table[at].kind &&
	    (table[at].dev != f->dev || table[at].ino != f->ino || table[at].kind != f->kind ||
		table[at].access != f->access))
		at = (at + 1) % room;
	return &table[at];
}

bool was_sent(struct lind_arg fd, const struct stat *st)
{
	struct file f = file_of(fd, st);
	bool yes;

	pthread_mutex_lock(&lock);
	yes = sent && place_of(sent, sent_room, &f)->kind;
	pthread_mutex_unlock(&lock);
	return yes;
}

static bool make_room(void)
{
	size_t room = sent_room ? 2 * sent_room : 64;
	struct file *more;

	if (2 * (sent_count + 1) <= sent_room)
		return true;
	if (!(more = calloc(room, sizeof *more)))
		return false;
	for (size_t i = 0; i < sent_room; i++)
		if (sent[i].kind)
			*place_of(more, room, &sent[i]) = sent[i];
	free(sent);
	sent = more;
	sent_room = room;
	return true;
}

int remember(struct lind_arg fd, const struct stat *st)
{
	struct file f = file_of(fd, st), *place;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!make_room())
		r = -ENOMEM;
	else if (!(place = place_of(sent, sent_room, &f))->kind) {
		*place = f;
		sent_count++;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void adopt(const struct lind_call *c, int arg)
{
	uint64_t cage = c->args[arg].cage;
	struct client *client = cage ? lind_client(cage) : NULL;
	struct stat this, other;

	if (!client || fd_inside(c->args[arg]) || !identify(c->args[arg], &this))
		return;
	remember(c->args[arg], &this);
	for (uint32_t fd = 0; fd < NUMBERS_LOOKED_AT; fd++)
		if (identify((struct lind_arg){ fd, cage }, &other) && other.st_dev == this.st_dev &&
		    other.st_ino == this.st_ino)
			fd_mark(client, fd);
	fd_mark(client, lind_arg32(c, arg));
}
