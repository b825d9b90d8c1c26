/* Calls whose arguments mean more than the table says: fcntl, prctl, select, and those that read
 * into several buffers. */
#include <string.h>
#include <sys/prctl.h>
#include "strace.h"

void print_pointer(struct text *t, uint64_t value)
{
	text_add(t, value ? "%#llx" : "NULL", (unsigned long long)value);
}

static const struct lind_name descriptor_flag[] = { { 1, "FD_CLOEXEC" }, { 0, NULL } };
static const struct lind_name seal[] = {
	{ 1, "F_SEAL_SEAL" },
	{ 2, "F_SEAL_SHRINK" },
	{ 4, "F_SEAL_GROW" },
	{ 8, "F_SEAL_WRITE" },
	{ 16, "F_SEAL_FUTURE_WRITE" },
	{ 32, "F_SEAL_EXEC" },
	{ 0, NULL },
};
static const struct lind_names descriptor_flags = { "FD", descriptor_flag }, seals = { "F_SEAL", seal };

void print_seals(struct text *to, uint32_t value)
{
	print_flags(to, value, &seals, "0");
}

void print_prctl(struct traced *t, int i, struct text *to)
{
	const struct lind_arg *a = t->call->args;
	char name[16] = { 0 };

	switch ((uint32_t)a[0].value) {
	case PR_GET_DUMPABLE:
	case PR_GET_KEEPCAPS:
	case PR_GET_SECCOMP:
	case PR_GET_SECUREBITS:
	case PR_GET_TIMERSLACK:
	case PR_GET_TIMING:
		t->count = 1;
		break;
	case PR_SET_PDEATHSIG:
	case PR_GET_PDEATHSIG:
	case PR_SET_DUMPABLE:
	case PR_SET_KEEPCAPS:
	case PR_SET_NAME:
	case PR_GET_NAME:
	case PR_SET_CHILD_SUBREAPER:
	case PR_GET_CHILD_SUBREAPER:
	case PR_SET_TIMERSLACK:
		t->count = 2;
		break;
	}
	if (i >= t->count || i == 0)
		return;
	if ((uint32_t)a[0].value == PR_SET_PDEATHSIG)
		print_signal(to, (int)a[1].value);
	else if ((uint32_t)a[0].value == PR_SET_NAME) {
		lind_read_string(a[1], name, sizeof name);
		if (*name || lind_read(a[1], name, 1) == 0)
			text_quoted(to, name, strnlen(name, 15), 15, strnlen(name, 16) > 14);
		else
			print_pointer(to, a[1].value);
	} else
		text_add(to, a[i].value > 9 ? "%#llx" : "%llu", (unsigned long long)a[i].value);
}

void print_fcntl(struct traced *t, struct text *to, uint64_t value)
{
	switch ((uint32_t)t->call->args[1].value) {
	case 1:
	case 3:
	case 9:
	case 11:
	case 1025:
	case 1032:
	case 1034: /* the F_GETs */
		t->count = 2;
		break;
	case 2:
		print_flags(to, (uint32_t)value, &descriptor_flags, "0");
		break;
	case 1033:
		print_seals(to, (uint32_t)value);
		break;
	case 4:
		print_open_flags(to, (uint32_t)value);
		break;
	case 5:
	case 6:
	case 7:
	case 36:
	case 37:
	case 38:
		print_struct(to, t->call->args[2], LIND_LAYOUT_FLOCK, 0);
		break;
	default:
		text_add(to, "%lld", (long long)value);
	}
}

/* select: the descriptors that are ready, and the time that is left. */
static void print_selected(struct traced *t)
{
	static const char *const names[] = { NULL, "in", "out", "except" };
	const char *between = "";
	struct text set;

	for (int i = 1; i <= 3 && t->result > 0; i++) {
		if (!t->call->args[i].value)
			continue;
		text_init(&set);
		print_set(&set, t->call->args[i]);
		if (strcmp(set.data, "[]")) {
			text_add(&t->after, "%s%s ", between, names[i]);
			text_bytes(&t->after, set.data, set.length);
			between = ", ";
		}
		text_free(&set);
	}
	if (t->result > 0 && t->call->args[4].value) {
		text_add(&t->after, "%sleft ", between);
		print_struct(&t->after, t->call->args[4], t->row->args[4].layout, 1);
	}
}

void print_scattered(struct traced *t)
{
	const struct lind_arg *a = t->call->args;
	int64_t bytes = failed_call(t->result) ? ADDRESSES : t->result;

	switch (t->row->nr) {
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
		print_iovecs(&t->args[1], a[1], a[2].value, bytes);
		break;
	case SYS_recvmsg:
		print_msghdr(&t->args[1], a[1], bytes);
		break;
	case SYS_sendmmsg:
	case SYS_recvmmsg:
		if (bytes == ADDRESSES)
			print_pointer(&t->args[1], a[1].value);
		else
			print_messages(&t->args[1], a[1], bytes, t->row->nr == SYS_recvmmsg);
		break;
	case SYS_select:
	case SYS_pselect6:
		if (t->result > 0)
			print_selected(t);
		break;
	case SYS_prctl:
		if (failed_call(t->result) ||
		    ((uint32_t)a[0].value != PR_GET_PDEATHSIG && (uint32_t)a[0].value != PR_GET_NAME))
			break;
		text_clear(&t->args[1]);
		if ((uint32_t)a[0].value == PR_GET_NAME)
			print_string(&t->args[1], a[1], 16);
		else
			print_struct(&t->args[1], a[1], LIND_LAYOUT_INT, 4);
		break;
	}
}
