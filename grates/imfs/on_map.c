/*
 * mmap of a file of ours: memory that the kernel gives, filled with the contents. A shared mapping is carried back
 * to the file by msync, munmap, exec and exit, and only then; others do not see its stores before, nor it theirs.
 */
#include <stdlib.h>
#include "grate.h"

#define MAP_SHARED_ 1u
#define MAP_PRIVATE_ 2u
#define MAP_TYPE_ 0xfu
#define MAP_ANONYMOUS_ 0x20u
#define PROT_READ_ 1u
#define PROT_WRITE_ 2u
#define PAGE 4096u

static int64_t call_plain6(uint32_t nr, uint64_t cage, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return lind_call(nr, cage, (struct lind_arg){ a, cage }, (struct lind_arg){ b, cage }, (struct lind_arg){ c, cage },
		(struct lind_arg){ d, cage }, (struct lind_arg){ e, cage }, (struct lind_arg){ f, cage });
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
	if ((flags & MAP_TYPE_) != MAP_PRIVATE_ && (prot & PROT_WRITE_) && imfs_may_write(f))
		return -EACCES;
	return 0;
}

static void hold(struct mapping *m)
{
	imfs_node_hold(m->node);
	m->node->writers += m->writable;
}

static void drop(struct mapping *m)
{
	m->node->writers -= m->writable;
	imfs_node_drop(&fs, m->node);
	free(m);
}

static void keep(struct client *client, struct imfs_file *f, uint64_t start, uint64_t length, int64_t off)
{
	struct mapping *m = malloc(sizeof *m);

	if (!m) {
		lind_log("out of memory for a shared mapping: it will not be carried back");
		return;
	}
	*m = (struct mapping){ client->mappings, f->node, start, start + (length + PAGE - 1) / PAGE * PAGE, off, !imfs_may_write(f) };
	hold(m);
	client->mappings = m;
}

int64_t on_mmap(const struct lind_call *c)
{
	uint64_t length = c->args[1].value, off = c->args[5].value, cage = c->args[4].cage;
	uint32_t prot = arg32(c, 2), flags = arg32(c, 3);
	struct client *client;
	struct imfs_file *f;
	struct lind_arg at = c->args[0];
	int64_t r;

	if (flags & MAP_ANONYMOUS_)
		return lind_forward(c);
	client = client_of(cage);
	imfs_read_lock();
	f = fd_of(client, c->args[4]);
	r = f ? may_map(f, prot, flags, off) : 0;
	imfs_read_unlock();
	if (!f)
		return lind_forward(c);
	if (r)
		return r;
	r = call_plain6(SYS_mmap, c->target, c->args[0].value, length, prot | PROT_READ_ | PROT_WRITE_,
		(flags & ~MAP_TYPE_) | MAP_PRIVATE_ | MAP_ANONYMOUS_, (uint64_t)-1, 0);
	if (r < 0 && r >= -4095)
		return r;
	at.value = (uint64_t)r;
	imfs_write_lock();
	if ((f = fd_of(client, c->args[4]))) {
		data_to_client(f, at, length, (int64_t)off);
		if ((flags & MAP_TYPE_) != MAP_PRIVATE_)
			keep(client, f, at.value, length, (int64_t)off);
	}
	imfs_write_unlock();
	if (!(prot & PROT_WRITE_))
		call_plain6(SYS_mprotect, c->target, at.value, length, prot, 0, 0, 0);
	return r;
}

/* Carries the part of [start, end) that is inside the file back to it. The write lock is held. */
static void carry_back(const struct mapping *m, uint64_t cage, uint64_t start, uint64_t end)
{
	size_t run;

	if (!m->writable)
		return;
	start = start > m->start ? start : m->start;
	end = end < m->end ? end : m->end;
	for (uint64_t at = start; at < end; at += run) {
		int64_t off = m->off + (int64_t)(at - m->start);
		uint8_t *to;

		if (off >= m->node->size)
			return;
		if (end - at > (uint64_t)(m->node->size - off))
			end = at + (uint64_t)(m->node->size - off);
		to = imfs_data_reserve(&fs, m->node, off, (size_t)(end - at), &run);
		if (!to || lind_read((struct lind_arg){ at, cage }, to, run))
			return;
		m->node->mtime = m->node->ctime = imfs_now();
	}
}

int64_t on_msync(const struct lind_call *c)
{
	struct client *client = client_of(c->target);
	uint64_t start = c->args[0].value, end = start + c->args[1].value;

	imfs_write_lock();
	for (struct mapping *m = client->cage == c->target ? client->mappings : NULL; m; m = m->next)
		carry_back(m, c->target, start, end);
	imfs_write_unlock();
	return lind_forward(c);
}

/* Before the memory goes with its program. */
void carry_all_back(uint64_t cage)
{
	struct client *client = client_of(cage);

	if (!__atomic_load_n(&client->mappings, __ATOMIC_RELAXED))
		return;
	imfs_write_lock();
	for (struct mapping *m = client->cage == cage ? client->mappings : NULL; m; m = m->next)
		carry_back(m, cage, m->start, m->end);
	imfs_write_unlock();
}

int64_t on_leave(const struct lind_call *c)
{
	carry_all_back(c->target);
	return lind_forward(c);
}

/* Takes [start, end) out of the list of mappings. */
static void cut(struct client *client, uint64_t cage, uint64_t start, uint64_t end)
{
	struct mapping **at = &client->mappings, *m;

	while ((m = *at)) {
		if (m->end <= start || m->start >= end) {
			at = &m->next;
			continue;
		}
		carry_back(m, cage, start, end);
		if (m->start < start && m->end > end) {
			struct mapping *upper = malloc(sizeof *upper);

			if (upper) {
				*upper = *m;
				upper->start = end;
				upper->off += (int64_t)(end - m->start);
				hold(upper);
				m->next = upper;
			}
			m->end = start;
		} else if (m->start < start)
			m->end = start;
		else if (m->end > end) {
			m->off += (int64_t)(end - m->start);
			m->start = end;
		} else {
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
		cut(client, c->target, start, end);
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
