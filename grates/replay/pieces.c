/*
 * Where a call writes. The table of calls says it of nearly all; those whose lengths stand
 * elsewhere are here. A piece may be longer than what the call writes: the rest is the client's own
 * memory, which a replay has as well.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "replay.h"

#define PAGE     4096u
#define MESSAGES 64 /* of one call, that are recorded */

static void add(struct pieces *p, struct lind_arg at, uint64_t length)
{
	if (!at.value || !length)
		return;
	if (p->count == PIECES || length > RECORD_MOST / 2)
		p->cut = true;
	if (p->count == PIECES)
		return;
	if (length > RECORD_MOST / 2)
		length = RECORD_MOST / 2;
	p->list[p->count++] = (struct piece){ at, (uint32_t)length };
}

/* At most IOV_MAX pieces: the kernel takes no more. */
static void add_vector(struct pieces *p, struct lind_arg at, uint64_t count)
{
	struct {
		uint32_t base, length;
	} one;

	for (uint64_t i = 0; i < count && i < 1024; i++)
		if (!lind_read(lind_at(at, i * sizeof one), &one, sizeof one))
			add(p, (struct lind_arg){ one.base, at.cage }, one.length);
}

struct message {
	uint32_t name, name_length, vector, vector_length, control, control_length, flags;
};

static void add_message(struct pieces *p, struct lind_arg at)
{
	struct message m;

	if (lind_read(at, &m, sizeof m))
		return;
	add_vector(p, (struct lind_arg){ m.vector, at.cage }, m.vector_length);
	if (p->trims && !p->trimmed)
		p->trimmed = p->count;
	add(p, (struct lind_arg){ m.name, at.cage }, m.name_length < 128 ? m.name_length : 128);
	add(p, (struct lind_arg){ m.control, at.cage }, m.control_length < (64u << 10) ? m.control_length : 64u << 10);
	add(p, at, sizeof m);
}

static void add_messages(struct pieces *p, struct lind_arg at, uint64_t count)
{
	const uint32_t size = sizeof(struct message) + 4;

	for (uint64_t i = 0; i < count && i < MESSAGES; i++) {
		add_message(p, lind_at(at, i * size));
		add(p, lind_at(at, i * size + sizeof(struct message)), 4);
	}
}

/* An address, whose room is in the word that the next argument points to. */
static void add_sized(struct pieces *p, struct lind_arg at, struct lind_arg size)
{
	uint32_t room;

	if (!lind_read(size, &room, sizeof room))
		add(p, at, room < PAGE ? room : PAGE);
}

static uint32_t ioctl_size(uint32_t request)
{
	uint32_t size = request >> 16 & 0x3fff;

	return request >> 30 && size ? size : 256;
}

/* Calls whose row does not say how much they write. False for others. */
static bool special(const struct lind_call *c, struct pieces *p)
{
	const struct lind_arg *a = c->args;

	switch (c->nr) {
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
		p->trims = true;
		add_vector(p, a[1], a[2].value);
		p->trimmed = p->count;
		return true;
	case SYS_recvmsg:
		p->trims = true;
		add_message(p, a[1]);
		return true;
	case SYS_recvmmsg:
	case SYS_sendmmsg:
		add_messages(p, a[1], a[2].value);
		add(p, c->nr == SYS_recvmmsg ? a[4] : (struct lind_arg){ 0 }, 16);
		return true;
	case SYS_ioctl:
		add(p, a[2], ioctl_size((uint32_t)a[1].value));
		if ((uint32_t)a[1].value == 0x8912 /* SIOCGIFCONF */)
			add_sized(p, a[2], a[2]);
		return true;
	case SYS_fcntl:
		/* The commands that write: F_GETLK, F_GETLK64, F_OFD_GETLK, F_GETOWN_EX. */
		if (a[1].value == 5 || a[1].value == 12 || a[1].value == 36 || a[1].value == 16)
			add(p, a[2], 32);
		return true;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		add(p, a[1], (a[2].value & 0xffff) * row_of(c->nr)->args[1].size);
		return true;
	case SYS_getgroups:
		add(p, a[1], (a[0].value & 0xffff) * 4);
		return true;
	case SYS_capget:
		add(p, a[0], 8);
		add(p, a[1], 24);
		return true;
	case SYS_msgrcv:
		add(p, a[1], a[2].value + 4);
		return true;
	case SYS_mincore:
		add(p, a[2], (a[1].value + PAGE - 1) / PAGE);
		return true;
	case SYS_semctl:
	case SYS_shmctl:
	case SYS_msgctl:
		add(p, a[c->nr == SYS_semctl ? 3 : 2], 2048);
		return true;
	case SYS_prctl:
		add(p, a[1], 16);
		return true;
	case SYS_sched_getattr:
		add(p, a[1], a[2].value < 256 ? a[2].value : 256);
		return true;
	case SYS_sched_getparam:
		add(p, a[1], 4);
		return true;
	case SYS_accept:
	case SYS_accept4:
	case SYS_getsockname:
	case SYS_getpeername:
		add_sized(p, a[1], a[2]);
		add(p, a[2], 4);
		return true;
	case SYS_getsockopt:
		add_sized(p, a[3], a[4]);
		add(p, a[4], 4);
		return true;
	case SYS_recvfrom:
		p->trims = true;
		add(p, a[1], a[2].value);
		p->trimmed = p->count;
		add_sized(p, a[4], a[5]);
		add(p, a[5], 4);
		return true;
	}
	return false;
}

bool writes_memory(const struct lind_syscall *row)
{
	for (int i = 0; row && i < row->count; i++)
		if (row->args[i].kind == LIND_OUT || row->args[i].kind == LIND_INOUT)
			return true;
	return row &&
	    (row->nr == SYS_prctl || row->nr == SYS_readv || row->nr == SYS_preadv || row->nr == SYS_preadv2 ||
		row->nr == SYS_sched_getattr || row->nr == SYS_sched_getparam || row->nr == SYS_sendmmsg);
}

void pieces_before(const struct lind_call *c, const struct lind_syscall *row, struct pieces *p)
{
	p->count = p->trimmed = 0;
	p->trims = p->cut = false;
	if (!row || special(c, p))
		return;
	for (int i = 0; i < row->count; i++) {
		const struct lind_param *param = &row->args[i];
		bool has_length = i + 1 < row->count && row->args[i + 1].kind == LIND_LEN;
		uint64_t size = param->size;

		if (param->kind != LIND_OUT && param->kind != LIND_INOUT)
			continue;
		if (param->layout == LIND_LAYOUT_BYTES) {
			size = has_length ? c->args[i + 1].value : 256;
			if (has_length && row->ret == LIND_LEN && !p->count) {
				p->trims = true;
				add(p, c->args[i], size);
				p->trimmed = p->count;
				continue;
			}
		} else if (has_length && param->layout == LIND_LAYOUT_POLLFD)
			size *= c->args[i + 1].value < 65536 ? c->args[i + 1].value : 65536;
		add(p, c->args[i], size);
	}
}

/* The bytes that a call has read are as many as its result says. A call that gave more than the
 * pieces hold was cut, not one that only had room for it. */
void pieces_after(const struct lind_call *c, int64_t result, struct pieces *p)
{
	uint64_t left = result > 0 ? (uint64_t)result : 0;

	for (size_t i = 0; p->trims && i < p->trimmed; i++) {
		if (p->list[i].length > left)
			p->list[i].length = (uint32_t)left;
		left -= p->list[i].length;
	}
	if (result < 0 || (p->trims && !left))
		p->cut = false;
	if ((c->nr == SYS_recvmmsg || c->nr == SYS_sendmmsg) && result > MESSAGES)
		p->cut = true;
}

/* A piece that reaches into what is not there is as long as what is there. */
static uint32_t read_part(const struct piece *piece, char *to)
{
	uint32_t done = 0;

	if (!lind_read(piece->at, to, piece->length))
		return piece->length;
	while (done < piece->length) {
		uint32_t step = PAGE - ((uint32_t)piece->at.value + done) % PAGE;

		if (step > piece->length - done)
			step = piece->length - done;
		if (lind_read(lind_at(piece->at, done), to + done, step))
			break;
		done += step;
	}
	return done;
}

void pieces_read(const struct pieces *p, struct bytes *to)
{
	for (size_t i = 0; i < p->count; i++) {
		uint32_t length;
		char *room;

		if (!p->list[i].length)
			continue;
		room = bytes_room(to, sizeof length + p->list[i].length);
		length = read_part(&p->list[i], room + sizeof length);
		memcpy(room, &length, sizeof length);
		to->used += sizeof length + length;
	}
}

/* Whether the client's memory, which cannot be written, has these bytes already: a piece may be
 * longer than what the call wrote. */
static bool there(const struct piece *piece, const char *bytes, uint32_t length)
{
	char *now = malloc(length);
	bool same = now && !lind_read(piece->at, now, length) && !memcmp(now, bytes, length);

	free(now);
	return same;
}

bool pieces_write(const struct pieces *p, const char *from, size_t length)
{
	const char *end = from + length;

	for (size_t i = 0; i < p->count; i++) {
		uint32_t size;

		if (!p->list[i].length)
			continue;
		if ((size_t)(end - from) < sizeof size)
			return false;
		memcpy(&size, from, sizeof size);
		from += sizeof size;
		if (size > p->list[i].length || (size_t)(end - from) < size)
			return false;
		if (size && lind_write(p->list[i].at, from, size) && !there(&p->list[i], from, size))
			return false;
		from += size;
	}
	return from == end;
}
