/*
 * Files of ours on their way from one client to another. In a message the kernel carries what it
 * has itself: for each file of ours an end of a pipe of its own, which is known again by device and
 * inode number where it arrives, and replaced by what stands for files. The other end is ours: when
 * nobody has the first any more, because it has arrived or its message was thrown away, poll says
 * so of ours, and the file is let go of.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "memfs.h"

#define MOST 512 /* on their way at once; each has a descriptor of the grate's */

static struct travelling {
	struct imfs_file *file;
	uint64_t dev, ino;
	int end;
} travelling[MOST];
static unsigned count; /* under the lock, as all of this */

void travel_settle(void)
{
	struct pollfd ends[MOST];

	if (!__atomic_load_n(&count, __ATOMIC_RELAXED))
		return;
	imfs_write_lock();
	for (unsigned i = 0; i < count; i++)
		ends[i] = (struct pollfd){ .fd = travelling[i].end };
	/* From the last, whose place the last of all takes. */
	for (unsigned i = poll(ends, count, 0) > 0 ? count : 0; i-- > 0;) {
		struct travelling gone = travelling[i];

		if (!(ends[i].revents & POLLERR))
			continue;
		travelling[i] = travelling[count - 1];
		__atomic_store_n(&count, count - 1, __ATOMIC_RELAXED);
		close(gone.end);
		imfs_file_drop(&fs, gone.file);
	}
	imfs_write_unlock();
}

int travel_begins(struct client *client, struct lind_arg fd)
{
	struct imfs_file *f;
	struct stat st;
	int ends[2], r = 0;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -ETOOMANYREFS;
	if (fstat(ends[0], &st))
		r = -errno;
	imfs_write_lock();
	if (!r && !(f = fd_of(client, fd)))
		r = -EBADF;
	if (!r && count == MOST)
		r = -ETOOMANYREFS;
	if (!r) {
		f->refs++;
		travelling[count] = (struct travelling){ f, st.st_dev, st.st_ino, ends[1] };
		__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
	}
	imfs_write_unlock();
	if (!r)
		return ends[0];
	close(ends[0]);
	close(ends[1]);
	return r;
}

/* The file that a descriptor is on the way for, with a reference, and what stands for it; NULL:
 * none. */
static struct imfs_file *arrived(struct lind_arg fd, int *stands)
{
	struct lind_arg none = { 0, fd.cage };
	struct imfs_file *f = NULL;
	struct stat st = { 0 };

	if (!__atomic_load_n(&count, __ATOMIC_RELAXED) ||
	    lind_call(SYS_fstat, fd.cage, fd, lind_mine(&st), none, none, none, none) < 0)
		return NULL;
	imfs_write_lock();
	for (unsigned i = 0; i < count && !f; i++)
		if (travelling[i].dev == st.st_dev && travelling[i].ino == st.st_ino)
			f = travelling[i].file;
	if (f) {
		f->refs++;
		*stands = f->node->watcher ? f->node->watcher->fd : imfs_is_fifo(f) ? f->node->fifo->ready : holder;
	}
	imfs_write_unlock();
	return f;
}

/* The numbers of the client are held, if it has threads. */
int travel_ends(uint64_t cage, struct client *client, uint32_t number, bool cloexec)
{
	struct lind_arg fd = { number, cage }, none = { 0, cage };
	int stands = -1;
	struct imfs_file *f = arrived(fd, &stands);
	int64_t r = 0;

	if (f)
		r = lind_call(SYS_dup3, cage, (struct lind_arg){ (uint64_t)stands, lind_self() }, fd,
		    (struct lind_arg){ cloexec ? O_CLOEXEC : 0, cage }, none, none, none);
	imfs_write_lock();
	if (r >= 0 && client->cage == cage && !(r = imfs_fd_room(&client->p.fds, number))) {
		if (f)
			imfs_fd_set(&fs, &client->p, number, f, cloexec);
		else
			imfs_fd_clear(&fs, &client->p, number);
	} else if (f)
		imfs_file_drop(&fs, f);
	imfs_write_unlock();
	return (int)r;
}
