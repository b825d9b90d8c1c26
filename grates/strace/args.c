/*
 * The arguments of a call. Its inputs are printed before it runs, its outputs afterwards; the
 * pieces are put together in their order. Most of it follows from the table; a few calls mean more
 * than their types say.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include "strace.h"

#define PATHS 4096u

static const struct lind_param *param(const struct traced *t, int i)
{
	return i >= 0 && i < t->row->count ? &t->row->args[i] : NULL;
}

static bool is_kind(const struct traced *t, int i, enum lind_kind kind)
{
	return param(t, i) && param(t, i)->kind == kind;
}

/* Some pointers stand for an array whose size no argument gives. */
static uint64_t fixed_count(uint32_t nr)
{
	return nr == SYS_utimensat || nr == SYS_utimes || nr == SYS_futimesat ? 2 : 1;
}

/* How many bytes argument i points to, as far as its neighbours say. */
static uint64_t bytes_of(const struct traced *t, int i)
{
	const struct lind_param *p = param(t, i);
	uint64_t count = fixed_count(t->row->nr);
	uint32_t length;

	/* An offset; the length behind it is of something else. */
	if (p->layout == LIND_LAYOUT_LONG)
		return p->size;
	if (is_kind(t, i + 1, LIND_LEN) && strcmp(param(t, i + 1)->name, "size"))
		count = t->call->args[i + 1].value;
	else if (p->layout == LIND_LAYOUT_SOCKADDR && is_kind(t, i + 1, LIND_INOUT))
		count =
		    t->call->args[i + 1].value && !lind_read(t->call->args[i + 1], &length, sizeof length) ? length : 0;
	if (p->layout == LIND_LAYOUT_SOCKADDR || !p->size)
		return count;
	return count > UINT32_MAX / p->size ? UINT32_MAX : count * p->size;
}

static int futex_arguments(uint32_t operation)
{
	switch (operation) {
	case 0:
	case 6:
		return 4; /* WAIT, LOCK_PI */
	case 1:
		return 3;  /* WAKE */
	case 3:
		return 5;  /* REQUEUE */
	case 7:
	case 8:
		return 2; /* UNLOCK_PI, TRYLOCK_PI */
	default:
		return 6;
	}
}

/* Arguments that their types do not describe. */
static bool special_before(struct traced *t, int i, struct text *to)
{
	const struct lind_arg *a = t->call->args;

	switch (t->row->nr) {
	case SYS_open:
	case SYS_openat: {
		int flags = t->row->nr == SYS_open ? 1 : 2;

		if (i == flags)
			print_open_flags(to, (uint32_t)a[i].value);
		else if (i == flags + 1 && !(a[flags].value & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))))
			t->count = flags + 1;
		else
			return false;
		return true;
	}
	case SYS_access:
	case SYS_faccessat:
	case SYS_faccessat2:
		if (!is_kind(t, i, LIND_FLAGS) || strcmp(param(t, i)->names->type, "AccessMode"))
			return false;
		print_flags(to, (uint32_t)a[i].value, param(t, i)->names, "F_OK");
		return true;
	case SYS_mmap:
	case SYS_mprotect:
		if (i == 5 && a[5].value)
			return print_pointer(to, a[5].value), true;
		if (i != 2)
			return false;
		print_flags(to, (uint32_t)a[i].value, param(t, i)->names, "PROT_NONE");
		return true;
	case SYS_fcntl:
		if (i == 2)
			print_fcntl(t, to, a[2].value);
		return i == 2;
	case SYS_execve:
	case SYS_spawn:
		if (i == 2 && !options.verbose)
			print_string_count(to, a[2]);
		return i == 2 && !options.verbose;
	case SYS_poll:
	case SYS_ppoll:
		if (i == 0)
			print_struct(to, a[0], LIND_LAYOUT_POLLFD, a[1].value > UINT32_MAX / 8 ? 0 : a[1].value * 8);
		return i == 0;
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_recvmsg:
	case SYS_sendmmsg:
	case SYS_recvmmsg:
		/* A buffer is shown after it has been filled. */
		if (t->row->nr == SYS_preadv2 && i == 4)
			t->skip = 4;
		return i == 1;
	case SYS_pwritev2:
		if (i == 4)
			t->skip = 4;
		return false;
	case SYS_prctl:
		print_prctl(t, i, to);
		return i > 0;
	case SYS_mremap:
		if (i == 4 && !(a[3].value & 2))
			t->count = 4;
		return i == 4 && t->count == 4;
	case SYS_mknod:
	case SYS_mknodat: {
		int mode = t->row->nr == SYS_mknod ? 1 : 2;

		if (i == mode)
			print_mode(to, (uint32_t)a[i].value);
		else if (i == mode + 1 && (a[mode].value & S_IFMT) != S_IFCHR && (a[mode].value & S_IFMT) != S_IFBLK)
			t->count = mode + 1;
		else
			return false;
		return true;
	}
	case SYS_futex:
		/* The word is what it is; the operation says how many arguments follow. */
		if (i == 0)
			return print_pointer(to, a[0].value), true;
		t->count = futex_arguments((uint32_t)a[1].value & 127);
		return i >= t->count;
	case SYS_socket:
		if (i == 2)
			print_protocol(to, (uint32_t)a[0].value, (uint32_t)a[2].value);
		return i == 2;
	case SYS_getsockopt:
	case SYS_setsockopt:
		if (i == 2)
			print_socket_option(to, (uint32_t)a[1].value, (uint32_t)a[2].value);
		else if (i == 3 && t->row->nr == SYS_setsockopt)
			print_option_value(to, a[3], a[4].value);
		else
			return false;
		return true;
	case SYS_ioctl:
		if (i != 2)
			return false;
		if ((uint32_t)a[1].value == FIONBIO)
			print_struct(to, a[2], LIND_LAYOUT_INT, 4);
		else if ((uint32_t)a[1].value == FIONCLEX || (uint32_t)a[1].value == FIOCLEX)
			t->count = 2;
		else
			return false;
		return true;
	default:
		return false;
	}
}

static void print_plain(struct text *to, const struct lind_param *p, struct lind_arg arg)
{
	uint64_t v = arg.value;

	switch (p->kind) {
	case LIND_DIRFD:
		text_add(to, (int32_t)v == AT_FDCWD ? "AT_FDCWD" : "%d", (int32_t)v);
		break;
	case LIND_FD:
	case LIND_INT:
	case LIND_PID:
	case LIND_UNIT:
		text_add(to, "%d", (int32_t)v);
		break;
	case LIND_UINT:
		text_add(to, "%u", (uint32_t)v);
		break;
	case LIND_UID:
	case LIND_GID:
		text_add(to, (uint32_t)v == UINT32_MAX ? "-1" : "%u", (uint32_t)v);
		break;
	case LIND_LONG:
	case LIND_OFF:
		text_add(to, "%lld", (long long)v);
		break;
	case LIND_ULONG:
	case LIND_LEN:
		text_add(to, "%llu", (unsigned long long)v);
		break;
	case LIND_MODE:
		text_add(to, "%#03o", (uint32_t)v);
		break;
	case LIND_SIGNAL:
		print_signal(to, (int)(uint32_t)v);
		break;
	case LIND_FLAGS:
		print_flags(to, (uint32_t)v, p->names, "0");
		break;
	case LIND_VALUE:
		print_value(to, (uint32_t)v, p->names);
		break;
	case LIND_PATH:
		print_string(to, arg, PATHS);
		break;
	case LIND_STR:
		print_string(to, arg, options.string_limit);
		break;
	case LIND_STR_ARRAY:
		print_strings(to, arg);
		break;
	default:
		print_pointer(to, v);
	}
}

void args_before(struct traced *t)
{
	t->count = t->row->count;
	t->skip = -1;
	text_init(&t->after);
	for (int i = 0; i < 6; i++)
		text_init(&t->args[i]);
	for (int i = 0; i < t->count; i++) {
		const struct lind_param *p = param(t, i);
		struct text *to = &t->args[i];

		if (special_before(t, i, to))
			continue;
		if (argument_names(t->row->nr, i)) {
			print_value(to, (uint32_t)t->call->args[i].value, argument_names(t->row->nr, i));
			continue;
		}
		if (p->kind == LIND_IN || (p->kind == LIND_INOUT && p->layout != LIND_LAYOUT_BYTES))
			print_struct(to, t->call->args[i], p->layout, bytes_of(t, i));
		else if (p->kind != LIND_OUT)
			print_plain(to, p, t->call->args[i]);
	}
}

static void print_entries(struct text *to, struct lind_arg address, int64_t bytes)
{
	int entries = 0;
	uint16_t length;

	for (int64_t at = 0; at < bytes; at += length, entries++)
		if (lind_read(lind_at(address, (uint64_t)at + 16), &length, sizeof length) || length < 19)
			break;
	text_add(to, "%#llx /* %d entries */", (unsigned long long)address.value, entries);
}

static bool special_after(struct traced *t, int i, struct text *to)
{
	const struct lind_arg *a = t->call->args;
	int32_t status;
	uint32_t length;
	uint16_t window[4];

	switch (t->row->nr) {
	case SYS_getdents:
	case SYS_getdents64:
		if (i == 1)
			print_entries(to, a[1], t->result);
		return i == 1;
	case SYS_wait4:
		if (i == 1 && a[1].value && t->result > 0 && !lind_read(a[1], &status, sizeof status))
			return print_wait_status(to, status), true;
		if (i == 1 || (i == 3 && t->result == 0))
			return print_pointer(to, a[i].value), true;
		return false;
	case SYS_getcwd:
		if (i == 0)
			print_string(to, a[0], PATHS);
		return i == 0;
	case SYS_getsockopt:
		if (i == 3)
			print_option_value(to, a[3], lind_read(a[4], &length, sizeof length) ? 0 : length);
		return i == 3;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		/* Only what is interrupted has something left. */
		return print_pointer(to, a[i].value), true;
	case SYS_copy_file_range:
	case SYS_splice:
		/* Where it began. */
		return true;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		if (i == 1)
			print_epoll_events(to, a[1], (uint64_t)t->result);
		return i == 1;
	case SYS_select:
	case SYS_pselect6:
		return true;
	case SYS_getgroups:
		if (i == 1)
			print_struct(to, a[1], LIND_LAYOUT_UINT, (uint64_t)t->result * 4);
		return i == 1;
	case SYS_poll:
	case SYS_ppoll:
		if (i == 0 && t->result > 0)
			print_poll_result(&t->after, a[0], a[1].value);
		return i == 0;
	case SYS_ioctl:
		if (i == 2 && (uint32_t)a[1].value == TIOCGWINSZ && !lind_read(a[2], window, sizeof window)) {
			text_clear(to);
			text_add(to, "{ws_row=%u, ws_col=%u, ws_xpixel=%u, ws_ypixel=%u}", window[0], window[1],
			    window[2], window[3]);
		} else if (i == 2 && (uint32_t)a[1].value == FIONREAD) {
			text_clear(to);
			print_struct(to, a[2], LIND_LAYOUT_INT, 4);
		}
		return i == 2;
	default:
		return false;
	}
}

/* A buffer that was written holds as many bytes as the call returned. */
static uint64_t written(const struct traced *t, int i)
{
	const struct lind_param *p = param(t, i);
	uint64_t bytes = bytes_of(t, i);

	if (p->layout == LIND_LAYOUT_BYTES && is_kind(t, i + 1, LIND_LEN) && (uint64_t)t->result < bytes &&
	    t->row->ret == LIND_LEN)
		return (uint64_t)t->result;
	return bytes;
}

/* `[110 => 2]`: what a number was, and what it is now. */
static void print_change(struct text *to, const struct text *now, enum lind_layout layout)
{
	if (layout == LIND_LAYOUT_UINT && to->length > 1 && now->data[0] == '[') {
		to->data[--to->length] = 0;
		text_bytes(to, " => ", 4);
		text_bytes(to, now->data + 1, now->length - 1);
		return;
	}
	text_bytes(to, " => ", 4);
	text_bytes(to, now->data, now->length);
}

static bool is_scattered(const struct traced *t, int i)
{
	uint32_t nr = t->row->nr;

	return (i == 1 && (nr == SYS_recvmsg || nr == SYS_sendmmsg || nr == SYS_recvmmsg)) || nr == SYS_futex;
}

void args_after(struct traced *t)
{
	bool failed = failed_call(t->result);

	print_scattered(t);

	for (int i = 0; i < t->count; i++) {
		const struct lind_param *p = param(t, i);
		struct text *to = &t->args[i], now;

		if ((p->kind != LIND_OUT && p->kind != LIND_INOUT) || is_scattered(t, i))
			continue;
		if (failed) {
			if (p->kind == LIND_OUT)
				print_pointer(to, t->call->args[i].value);
			continue;
		}
		if (special_after(t, i, to))
			continue;
		if (p->kind == LIND_OUT) {
			print_struct(to, t->call->args[i], p->layout, written(t, i));
			continue;
		}
		if (p->layout == LIND_LAYOUT_BYTES || t->row->nr == SYS_fcntl)
			continue;
		text_init(&now);
		print_struct(&now, t->call->args[i], p->layout, bytes_of(t, i));
		if (strcmp(now.data, to->data))
			print_change(to, &now, p->layout);
		text_free(&now);
	}
}

void print_call(struct text *line, const struct traced *t)
{
	text_add(line, "%s(", t->row->name);
	for (int i = 0; i < t->count; i++) {
		if (i == t->skip)
			continue;
		text_bytes(line, ", ", i ? 2 : 0);
		text_bytes(line, t->args[i].data, t->args[i].length);
	}
	text_add(line, ")");
}

void release_call(struct traced *t)
{
	for (int i = 0; i < 6; i++)
		text_free(&t->args[i]);
	text_free(&t->after);
}

void print_result(struct text *line, const struct traced *t)
{
	int64_t r = t->result;
	enum lind_kind kind = t->row->ret;

	if (failed_call(r)) {
		text_add(line, "-1 ");
		print_errno(line, (int)-r);
		return;
	}
	if (t->row->nr == SYS_fcntl && (uint32_t)t->call->args[1].value == 1)
		text_add(line, r & 1 ? "0x1 (flags FD_CLOEXEC)" : "%d", (int)r);
	else if (t->row->nr == SYS_fcntl && (uint32_t)t->call->args[1].value == 3) {
		text_add(line, "%#llx (flags ", (unsigned long long)r);
		print_open_flags(line, (uint32_t)r);
		text_add(line, ")");
	} else if (t->row->nr == SYS_fcntl && (uint32_t)t->call->args[1].value == 1034 && r) {
		text_add(line, "%#llx (seals ", (unsigned long long)r);
		print_seals(line, (uint32_t)r);
		text_add(line, ")");
	} else if (kind == LIND_MODE)
		text_add(line, "%#03o", (unsigned)r);
	else if (kind == LIND_ADDR)
		text_add(line, r ? "%#llx" : "0", (unsigned long long)r);
	else
		text_add(line, "%lld", (long long)r);
	if (t->row->nr == SYS_poll || t->row->nr == SYS_ppoll || t->row->nr == SYS_select || t->row->nr == SYS_pselect6)
		if (!r)
			text_add(line, " (Timeout)");
	if (t->after.length) {
		text_bytes(line, " (", 2);
		text_bytes(line, t->after.data, t->after.length);
		text_bytes(line, ")", 1);
	}
}
