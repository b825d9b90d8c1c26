/*
 * mmap of a file of ours. A file that is mapped shared moves to a file of the kernel's without a
 * name, once and for good: the grate and the clients map the same memory, and all see at once what
 * any of them stores. A private mapping of a file that was never mapped shared is a copy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "memfs.h"

#define PAGE    4096u
#define LARGEST (1u << 31) /* that we map: our own memory has 4G */

/* Under the lock, as malloc is: neither waits. */
static int backing_fit(struct imfs_backing *b, uint64_t size)
{
	size_t room = size < IMFS_CHUNK ? IMFS_CHUNK : (size_t)size;
	void *base;

	if (size > LARGEST)
		return -EFBIG;
	if (b->fd < 0 && (b->fd = memfd_create("imfs", MFD_CLOEXEC)) < 0)
		return errno == EMFILE ? -ENFILE : -errno;
	if (ftruncate(b->fd, (off_t)size))
		return -errno;
	if (!b->base || size > b->room) {
		/* Once it has grown it will grow more. */
		room = !b->base          ? (room + PAGE - 1) / PAGE * PAGE
		    : room < LARGEST / 2 ? (room * 2 + PAGE - 1) / PAGE * PAGE
					 : LARGEST;
		base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
		if (base == MAP_FAILED)
			return -ENOMEM;
		if (b->base)
			munmap(b->base, (size_t)b->room);
		b->base = base;
		b->room = room;
	}
	b->size = size;
	return 0;
}

static void backing_end(struct imfs_backing *b)
{
	if (b->base)
		munmap(b->base, (size_t)b->room);
	if (b->fd >= 0)
		close(b->fd);
}

/* Without a look at the bytes: no page of ours is touched for it. */
static int backing_copy(struct imfs_backing *b, int fd, uint64_t size)
{
	off_t at = 0;
	ssize_t moved = 1;

	while ((uint64_t)at < size && (moved > 0 || (moved < 0 && errno == EINTR)))
		moved = sendfile(b->fd, fd, &at, (size_t)(size - (uint64_t)at));
	close(fd);
	/* Bytes that somebody has cut off meanwhile are zeros. */
	return moved < 0 ? -errno : 0;
}

void backing_init(void)
{
	imfs_backing_copy = backing_copy;
	imfs_backing_fit = backing_fit;
	imfs_backing_end = backing_end;
}

static int may_map(const struct imfs_file *f, uint32_t prot, uint32_t flags, uint64_t off)
{
	if (off % PAGE)
		return -EINVAL;
	if (f->flags & O_PATH)
		return -EBADF;
	if (!S_ISREG(f->node->mode))
		return -ENODEV;
	if (imfs_may_read(f))
		return -EACCES;
	if ((flags & MAP_TYPE) != MAP_PRIVATE && (prot & PROT_WRITE) && imfs_may_write(f))
		return -EACCES;
	return 0;
}

static void hold(struct mapping *m)
{
	imfs_node_hold(m->node);
	m->node->writers += m->writable;
	m->node->mappers += m->writable;
}

static void drop(struct mapping *m)
{
	m->node->writers -= m->writable;
	m->node->mappers -= m->writable;
	imfs_node_drop(&fs, m->node);
	free(m);
}

static int64_t map_at(
    const struct lind_call *c, uint64_t at, uint32_t prot, uint32_t flags, struct lind_arg fd, uint64_t off)
{
	return lind_call(SYS_mmap, c->target, (struct lind_arg){ at, c->target }, c->args[1],
	    (struct lind_arg){ prot, c->target }, (struct lind_arg){ flags, c->target }, fd,
	    (struct lind_arg){ off, c->target });
}

static bool failed(int64_t r)
{
	return r < 0 && r >= -4095;
}

/* Of the backing, open for reading only: what is mapped of that cannot be made writable. It is
 * not ours if it cannot be had. */
static int reader_of(int fd)
{
	char name[32];
	int reader;

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	if ((reader = open(name, O_RDONLY | O_CLOEXEC)) >= 0 && (fcntl(reader, F_GETFL) & O_ACCMODE) != O_RDONLY) {
		close(reader);
		reader = -1;
	}
	return reader;
}

/* A mapping of the backing, which `m` holds. */
static int64_t map_backing(const struct lind_call *c, struct client *client, struct mapping *m, int fd)
{
	uint32_t flags = lind_arg32(c, 3);
	bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
	int reader = m->writable ? -1 : reader_of(fd);
	int64_t r = -EACCES;

	if (m->writable || reader >= 0)
		r = map_at(c, c->args[0].value, lind_arg32(c, 2), flags,
		    (struct lind_arg){ (uint64_t)(m->writable ? fd : reader), lind_self() }, c->args[5].value);
	if (reader >= 0)
		close(reader);
	imfs_write_lock();
	if (!failed(r) && shared && client->cage == c->target) {
		m->start = (uint64_t)r;
		m->end = m->start + (c->args[1].value + PAGE - 1) / PAGE * PAGE;
		m->next = client->mappings;
		client->mappings = m;
	} else
		drop(m);
	imfs_write_unlock();
	return r;
}

/* Anonymous memory with what the file holds. */
static int64_t map_copy(const struct lind_call *c, struct client *client)
{
	uint32_t prot = lind_arg32(c, 2), flags = lind_arg32(c, 3);
	struct lind_arg at = c->args[0];
	struct imfs_file *f;
	int64_t r = map_at(c, at.value, prot | PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS,
	    (struct lind_arg){ (uint64_t)-1, c->target }, 0);

	if (failed(r))
		return r;
	at.value = (uint64_t)r;
	imfs_write_lock();
	if ((f = fd_of(client, c->args[4])))
		data_to_client(f, at, c->args[1].value, (int64_t)c->args[5].value);
	imfs_write_unlock();
	if (!(prot & PROT_WRITE))
		lind_call_plain(SYS_mprotect, c->target, at.value, c->args[1].value, prot, 0);
	return r;
}

/* A private mapping of a file that is below as it is here. Takes the descriptor over. */
static int64_t map_below(const struct lind_call *c, int fd)
{
	int64_t r = map_at(c, c->args[0].value, lind_arg32(c, 2), lind_arg32(c, 3),
	    (struct lind_arg){ (uint64_t)fd, lind_self() }, c->args[5].value);

	close(fd);
	return r;
}

int64_t on_mmap(const struct lind_call *c)
{
	uint32_t flags = lind_arg32(c, 3);
	bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
	struct mapping *m = NULL;
	struct client *client;
	struct imfs_file *f;
	int64_t r;
	int fd = -1;

	if (flags & MAP_ANONYMOUS)
		return lind_forward(c);
	client = client_of(c->args[4].cage);
	imfs_write_lock();
	if (!(f = fd_of(client, c->args[4]))) {
		imfs_write_unlock();
		return lind_forward(c);
	}
	r = may_map(f, lind_arg32(c, 2), flags, c->args[5].value);
	if (!r && shared && (r = imfs_data_back(&fs, f->node)))
		r = r == -EFBIG ? -EOVERFLOW : r == -ENOSPC ? -ENOMEM : r;
	if (!r && f->node->data.backing) {
		fd = f->node->data.backing->fd;
		if (!(m = calloc(1, sizeof *m)))
			r = -ENOMEM;
	}
	if (!r && !shared && !m && f->node->lazy)
		fd = imfs_below->whole(f->node);
	if (!r && m) {
		m->node = f->node;
		m->writable = shared && !imfs_may_write(f);
		hold(m);
		if (m->writable && f->node->under)
			imfs_below->mapped(f->node);
	}
	imfs_write_unlock();
	if (r)
		return r;
	if (fd >= 0 && !m)
		return map_below(c, fd);
	return m ? map_backing(c, client_of(c->target), m, fd) : map_copy(c, client);
}

static void touch(struct imfs_node *n)
{
	n->mtime = n->ctime = imfs_now();
	imfs_changed(n);
}

/* Stores to a mapping are in the file at once; only now is there a time to say when. */
int64_t on_msync(const struct lind_call *c)
{
	struct client *client = client_of(c->target);
	uint64_t start = c->args[0].value, end = start + c->args[1].value;
	int64_t r = lind_forward(c);

	if (r || !__atomic_load_n(&client->mappings, __ATOMIC_RELAXED))
		return r;
	imfs_write_lock();
	for (struct mapping *m = client->cage == c->target ? client->mappings : NULL; m; m = m->next)
		if (m->writable && m->start < end && m->end > start)
			touch(m->node);
	imfs_write_unlock();
	return imfs_below && c->args[2].value & MS_SYNC ? imfs_below->sync() : 0;
}

/* Takes [start, end) out of the list of mappings. */
static void cut(struct client *client, uint64_t start, uint64_t end)
{
	struct mapping **at = &client->mappings, *m;

	while ((m = *at)) {
		if (m->end <= start || m->start >= end) {
			at = &m->next;
			continue;
		}
		if (m->start < start && m->end > end) {
			struct mapping *upper = malloc(sizeof *upper);

			if (upper) {
				*upper = *m;
				upper->start = end;
				hold(upper);
				m->next = upper;
			}
			m->end = start;
		} else if (m->start < start)
			m->end = start;
		else if (m->end > end)
			m->start = end;
		else {
			*at = m->next;
			drop(m);
			continue;
		}
		at = &m->next;
	}
}

int64_t on_munmap(const struct lind_call *c)
{
	struct client *client = client_of(c->target);
	uint64_t start = c->args[0].value, end = start + (c->args[1].value + PAGE - 1) / PAGE * PAGE;

	if (!__atomic_load_n(&client->mappings, __ATOMIC_RELAXED) || end < start)
		return lind_forward(c);
	imfs_write_lock();
	if (client->cage == c->target)
		cut(client, start, end);
	imfs_write_unlock();
	return lind_forward(c);
}

void mappings_copy(struct client *to, const struct client *from)
{
	for (const struct mapping *m = from->mappings; m; m = m->next) {
		struct mapping *copy = malloc(sizeof *copy);

		if (!copy)
			return;
		*copy = *m;
		copy->next = to->mappings;
		to->mappings = copy;
		hold(copy);
	}
}

void mappings_free(struct client *client)
{
	struct mapping *m;

	while ((m = client->mappings)) {
		client->mappings = m->next;
		drop(m);
	}
}
