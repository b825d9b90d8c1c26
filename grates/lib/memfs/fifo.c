/* Fifos: the bytes between those who have one open for writing and those who have it open for
 * reading. Waiting is for the caller. */
#include <stdlib.h>
#include "imfs_core.h"

static void no_change(struct imfs_fifo *fifo)
{
	(void)fifo;
}
void (*imfs_fifo_changed)(struct imfs_fifo *fifo) = no_change;

static void no_end(int ready)
{
	(void)ready;
}
void (*imfs_fifo_ended)(int ready) = no_end;

static bool reads(const struct imfs_file *f)
{
	return (f->flags & O_ACCMODE) == O_RDONLY || (f->flags & O_ACCMODE) == O_RDWR;
}

static bool writes(const struct imfs_file *f)
{
	return (f->flags & O_ACCMODE) == O_WRONLY || (f->flags & O_ACCMODE) == O_RDWR;
}

static void changed(struct imfs_fifo *fifo)
{
	fifo->word++;
	imfs_fifo_changed(fifo);
}

int imfs_fifo_open(struct imfs *fs, struct imfs_file *f)
{
	struct imfs_fifo *fifo = f->node->fifo;

	if (!fifo) {
		if (imfs_charge(fs, sizeof *fifo))
			return -ENOMEM;
		if (!(fifo = malloc(sizeof *fifo))) {
			fs->used -= sizeof *fifo;
			return -ENOMEM;
		}
		memset(fifo, 0, offsetof(struct imfs_fifo, bytes));
		fifo->ready = -1;
		f->node->fifo = fifo;
	}
	fifo->readers += reads(f);
	fifo->reads_opened += reads(f);
	fifo->writers += writes(f);
	fifo->writes_opened += writes(f);
	changed(fifo);
	return 0;
}

void imfs_fifo_close(struct imfs *fs, struct imfs_file *f)
{
	struct imfs_fifo *fifo = f->node->fifo;

	fifo->readers -= reads(f);
	fifo->writers -= writes(f);
	if (fifo->readers || fifo->writers) {
		changed(fifo);
		return;
	}
	imfs_fifo_ended(fifo->ready);
	f->node->fifo = NULL;
	fs->used -= sizeof *fifo;
	free(fifo);
}

int imfs_fifo_may_open(const struct imfs_node *n, uint32_t flags)
{
	bool only_writes = (flags & O_ACCMODE) == O_WRONLY;

	return only_writes && (flags & O_NONBLOCK) && !(n->fifo && n->fifo->readers) ? -ENXIO : 0;
}

bool imfs_fifo_alone(const struct imfs_file *f)
{
	const struct imfs_fifo *fifo = f->node->fifo;

	return !(f->flags & O_NONBLOCK) && (reads(f) ? !fifo->writers : !fifo->readers);
}

int64_t imfs_fifo_data(const struct imfs_fifo *fifo, const uint8_t **from)
{
	uint32_t to_end = IMFS_FIFO - fifo->first;

	if (!fifo->used)
		return fifo->writers ? -EAGAIN : 0;
	*from = fifo->bytes + fifo->first;
	return fifo->used < to_end ? fifo->used : to_end;
}

void imfs_fifo_took(struct imfs_fifo *fifo, uint32_t length)
{
	fifo->first = (fifo->first + length) % IMFS_FIFO;
	fifo->used -= length;
	changed(fifo);
}

int64_t imfs_fifo_room(struct imfs_fifo *fifo, uint64_t whole, uint8_t **to)
{
	uint32_t end = (fifo->first + fifo->used) % IMFS_FIFO, room = IMFS_FIFO - fifo->used, to_end = IMFS_FIFO - end;

	if (!fifo->readers)
		return -EPIPE;
	/* Short data is written as a whole: pipe(7). */
	if (!room || (whole <= IMFS_PIPE_BUF && room < whole))
		return -EAGAIN;
	*to = fifo->bytes + end;
	return room < to_end ? room : to_end;
}

void imfs_fifo_put(struct imfs_fifo *fifo, uint32_t length)
{
	fifo->used += length;
	changed(fifo);
}
