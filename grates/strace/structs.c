/* The structs of x86-64 Linux behind pointers of a 32-bit guest. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "strace.h"

struct time64 {
	int64_t sec, fraction;
};

static void add_time(struct text *t, const char *fraction, const struct time64 *time)
{
	/* The upper half of tv_nsec is padding in a guest. */
	if ((int32_t)time->fraction == 0x3fffffff && fraction[0] == 'n')
		text_add(t, "UTIME_NOW");
	else if ((int32_t)time->fraction == 0x3ffffffe && fraction[0] == 'n')
		text_add(t, "UTIME_OMIT");
	else
		text_add(t, "{tv_sec=%lld, tv_%s=%d}", (long long)time->sec, fraction, (int)time->fraction);
}

static void print_times(struct text *t, struct lind_arg address, const char *fraction, uint64_t bytes)
{
	struct time64 times[2];
	size_t count = bytes >= sizeof times ? 2 : 1;

	if (!fetch(t, address, times, count * sizeof *times))
		return;
	text_add(t, count > 1 ? "[" : "");
	for (size_t i = 0; i < count; i++) {
		text_add(t, i ? ", " : "");
		add_time(t, fraction, &times[i]);
	}
	text_add(t, count > 1 ? "]" : "");
}

static void print_itimer(struct text *t, struct lind_arg address, const char *fraction)
{
	struct time64 times[2];

	if (!fetch(t, address, times, sizeof times))
		return;
	text_add(t, "{it_interval=");
	add_time(t, fraction, &times[0]);
	text_add(t, ", it_value=");
	add_time(t, fraction, &times[1]);
	text_add(t, "}");
}

static void print_stat(struct text *t, struct lind_arg address)
{
	struct {
		uint64_t dev, ino, nlink;
		uint32_t mode, uid, gid, pad;
		uint64_t rdev;
		int64_t size, blksize, blocks;
		struct time64 times[3];
		int64_t unused[3];
	} st;

	if (!fetch(t, address, &st, sizeof st))
		return;
	text_add(t, "{");
	if (options.verbose)
		text_add(t, "st_dev=makedev(%#llx, %#llx), st_ino=%llu, ", (unsigned long long)(st.dev >> 8 & 0xfff),
		    (unsigned long long)(st.dev & 0xff), (unsigned long long)st.ino);
	text_add(t, "st_mode=");
	print_mode(t, st.mode);
	if (options.verbose)
		text_add(t, ", st_nlink=%llu, st_uid=%u, st_gid=%u, st_blksize=%lld, st_blocks=%lld",
		    (unsigned long long)st.nlink, st.uid, st.gid, (long long)st.blksize, (long long)st.blocks);
	text_add(t, ", st_size=%lld", (long long)st.size);
	if (options.verbose)
		text_add(t, ", st_atime=%lld, st_mtime=%lld, st_ctime=%lld}", (long long)st.times[0].sec,
		    (long long)st.times[1].sec, (long long)st.times[2].sec);
	else
		text_add(t, ", ...}");
}

static void print_statx(struct text *t, struct lind_arg address)
{
	struct {
		uint32_t mask, blksize;
		uint64_t attributes;
		uint32_t nlink, uid, gid;
		uint16_t mode, pad;
		uint64_t ino, size, blocks;
	} st;

	if (!fetch(t, address, &st, sizeof st))
		return;
	text_add(t, "{stx_mask=");
	print_flags(t, st.mask, statx_mask, "0");
	text_add(t, ", stx_attributes=%#llx, stx_mode=", (unsigned long long)st.attributes);
	print_mode(t, st.mode);
	text_add(t, ", stx_size=%llu, ...}", (unsigned long long)st.size);
}

static void print_statfs(struct text *t, struct lind_arg address)
{
	struct {
		int64_t type, bsize;
		uint64_t blocks, bfree, bavail, files, ffree;
	} st;

	if (!fetch(t, address, &st, sizeof st))
		return;
	text_add(t,
	    "{f_type=%#llx, f_bsize=%lld, f_blocks=%llu, f_bfree=%llu, f_bavail=%llu, f_files=%llu, f_ffree=%llu, ...}",
	    (unsigned long long)st.type, (long long)st.bsize, (unsigned long long)st.blocks,
	    (unsigned long long)st.bfree, (unsigned long long)st.bavail, (unsigned long long)st.files,
	    (unsigned long long)st.ffree);
}

static void print_poll(struct text *t, struct lind_arg address, uint64_t bytes)
{
	struct {
		int32_t fd;
		int16_t events, revents;
	} fds[ARRAY_LIMIT];
	uint64_t count = bytes / sizeof *fds, shown = count < ARRAY_LIMIT ? count : ARRAY_LIMIT;

	if (!fetch(t, address, fds, (size_t)shown * sizeof *fds))
		return;
	text_add(t, "[");
	for (uint64_t i = 0; i < shown; i++) {
		text_add(t, "%s{fd=%d", i ? ", " : "", fds[i].fd);
		if (fds[i].fd >= 0) {
			text_add(t, ", events=");
			print_flags(t, (uint16_t)fds[i].events, poll_events, "0");
		}
		text_add(t, "}");
	}
	text_add(t, shown < count ? ", ...]" : "]");
}

/* Behind the result: what happened to which descriptor. */
void print_poll_result(struct text *t, struct lind_arg address, uint64_t count)
{
	struct {
		int32_t fd;
		int16_t events, revents;
	} fds[ARRAY_LIMIT];
	const char *between = "";

	count = count < ARRAY_LIMIT ? count : ARRAY_LIMIT;
	if (!address.value || lind_read(address, fds, (size_t)count * sizeof *fds))
		return;
	text_add(t, "[");
	for (uint64_t i = 0; i < count; i++) {
		if (!fds[i].revents)
			continue;
		text_add(t, "%s{fd=%d, revents=", between, fds[i].fd);
		print_flags(t, (uint16_t)fds[i].revents, poll_events, "0");
		text_add(t, "}");
		between = ", ";
	}
	text_add(t, "]");
}

static void print_epoll(struct text *t, struct lind_arg address, uint64_t bytes, bool array)
{
	struct __attribute__((packed)) {
		uint32_t events;
		uint64_t data;
	} events[ARRAY_LIMIT];
	uint64_t count = bytes / sizeof *events, shown = count < ARRAY_LIMIT ? count : ARRAY_LIMIT;

	if (bytes && !fetch(t, address, events, (size_t)shown * sizeof *events))
		return;
	text_add(t, array ? "[" : "");
	for (uint64_t i = 0; i < shown; i++) {
		text_add(t, "%s{events=", i ? ", " : "");
		print_flags(t, events[i].events, epoll_events, "0");
		text_add(t, ", data={u32=%u, u64=%llu}}", (uint32_t)events[i].data, (unsigned long long)events[i].data);
	}
	text_add(t, !array ? "" : shown < count ? ", ...]" : "]");
}

void print_epoll_events(struct text *t, struct lind_arg address, uint64_t count)
{
	print_epoll(t, address, count * 12, true);
}

void print_set(struct text *t, struct lind_arg address)
{
	uint32_t bits[32];
	const char *between = "";

	if (!fetch(t, address, bits, sizeof bits))
		return;
	text_add(t, "[");
	for (int fd = 0; fd < 1024; fd++)
		if (bits[fd / 32] >> fd % 32 & 1) {
			text_add(t, "%s%d", between, fd);
			between = " ";
		}
	text_add(t, "]");
}

static void print_signals(struct text *t, struct lind_arg address)
{
	uint64_t bits;
	const char *between = "";

	if (!fetch(t, address, &bits, sizeof bits))
		return;
	/* Of a set that is nearly full, what it lacks. */
	if (__builtin_popcountll(bits) >= 64 * 2 / 3) {
		text_add(t, "~");
		bits = ~bits;
	}
	text_add(t, "[");
	for (int signal = 1; signal <= 64; signal++)
		if (bits >> (signal - 1) & 1) {
			struct text name;

			text_init(&name);
			print_signal(&name, signal);
			text_add(t, "%s%s", between, strncmp(name.data, "SIG", 3) ? name.data : name.data + 3);
			text_free(&name);
			between = " ";
		}
	text_add(t, "]");
}

/* The mask argument of pselect6: an address and a size. */
static void print_sigset_arg(struct text *t, struct lind_arg address)
{
	uint64_t mask[2];

	if (!fetch(t, address, mask, sizeof mask))
		return;
	text_add(t, "{sigmask=");
	print_signals(t, (struct lind_arg){ mask[0], address.cage });
	text_add(t, ", sigsetsize=%u}", (unsigned)mask[1]);
}

static void print_sigaction(struct text *t, struct lind_arg address)
{
	static const struct lind_name names[] = {
		{ 1, "SA_NOCLDSTOP" },
		{ 2, "SA_NOCLDWAIT" },
		{ 4, "SA_SIGINFO" },
		{ 0x04000000, "SA_RESTORER" },
		{ 0x08000000, "SA_ONSTACK" },
		{ 0x10000000, "SA_RESTART" },
		{ 0x40000000, "SA_NODEFER" },
		{ 0x80000000, "SA_RESETHAND" },
		{ 0, NULL },
	};
	static const struct lind_names flags = { "sa_flags", names };
	struct {
		uint32_t handler, flags, restorer, mask[2];
	} action;

	if (!fetch(t, address, &action, sizeof action))
		return;
	text_add(t, "{sa_handler=");
	text_add(t, action.handler == 0 ? "SIG_DFL" : action.handler == 1 ? "SIG_IGN" : "%#x", action.handler);
	text_add(t, ", sa_mask=");
	print_signals(t, lind_at(address, 12));
	text_add(t, ", sa_flags=");
	print_flags(t, action.flags, &flags, "0");
	text_add(t, "}");
}

static void print_flock(struct text *t, struct lind_arg address)
{
	static const char *const types[] = { "F_RDLCK", "F_WRLCK", "F_UNLCK" },
				 *const whences[] = { "SEEK_SET", "SEEK_CUR", "SEEK_END" };
	struct {
		int16_t type, whence;
		uint32_t pad;
		int64_t start, len;
		int32_t pid;
	} lock;

	if (!fetch(t, address, &lock, sizeof lock))
		return;
	text_add(t, "{l_type=%s, l_whence=%s, l_start=%lld, l_len=%lld}",
	    lock.type >= 0 && lock.type < 3 ? types[lock.type] : "?",
	    lock.whence >= 0 && lock.whence < 3 ? whences[lock.whence] : "?", (long long)lock.start,
	    (long long)lock.len);
}

static void print_limit_value(struct text *t, uint64_t value)
{
	if (value == UINT64_MAX)
		text_add(t, "RLIM_INFINITY");
	else if (value && value % 1024 == 0)
		text_add(t, "%llu*1024", (unsigned long long)value / 1024);
	else
		text_add(t, "%llu", (unsigned long long)value);
}

static void print_rlimit(struct text *t, struct lind_arg address)
{
	uint64_t limit[2];

	if (!fetch(t, address, limit, sizeof limit))
		return;
	text_add(t, "{rlim_cur=");
	print_limit_value(t, limit[0]);
	text_add(t, ", rlim_max=");
	print_limit_value(t, limit[1]);
	text_add(t, "}");
}

static void print_utsname(struct text *t, struct lind_arg address)
{
	char names[6][65];

	if (!fetch(t, address, names, sizeof names))
		return;
	text_add(t, "{sysname=\"%.64s\", nodename=\"%.64s\", ...}", names[0], names[1]);
}

static void print_rusage(struct text *t, struct lind_arg address)
{
	struct time64 times[2];

	if (!fetch(t, address, times, sizeof times))
		return;
	text_add(t, "{ru_utime=");
	add_time(t, "usec", &times[0]);
	text_add(t, ", ru_stime=");
	add_time(t, "usec", &times[1]);
	text_add(t, ", ...}");
}

static void print_numbers(struct text *t, struct lind_arg address, size_t size, uint64_t bytes, bool is_signed)
{
	uint8_t raw[8 * ARRAY_LIMIT];
	size_t count = (size_t)(bytes / size);

	count = count < 1 ? 1 : count < ARRAY_LIMIT ? count : ARRAY_LIMIT;
	if (!fetch(t, address, raw, count * size))
		return;
	text_add(t, "[");
	for (size_t i = 0; i < count; i++) {
		int64_t wide = 0;
		int32_t narrow;

		memcpy(size == 8 ? (void *)&wide : (void *)&narrow, raw + i * size, size);
		if (size == 4)
			wide = is_signed ? narrow : (int64_t)(uint32_t)narrow;
		text_add(t, "%s%lld", i ? ", " : "", (long long)wide);
	}
	text_add(t, "]");
}

void print_wait_status(struct text *t, int status)
{
	if (WIFEXITED(status))
		text_add(t, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(status));
	else if (WIFSIGNALED(status)) {
		text_add(t, "[{WIFSIGNALED(s) && WTERMSIG(s) == ");
		print_signal(t, WTERMSIG(status));
		text_add(t, "%s}]", WCOREDUMP(status) ? " && WCOREDUMP(s)" : "");
	} else if (WIFSTOPPED(status)) {
		text_add(t, "[{WIFSTOPPED(s) && WSTOPSIG(s) == ");
		print_signal(t, WSTOPSIG(status));
		text_add(t, "}]");
	} else if (WIFCONTINUED(status))
		text_add(t, "[{WIFCONTINUED(s)}]");
	else
		text_add(t, "[%#x]", status);
}

void print_struct(struct text *t, struct lind_arg address, enum lind_layout layout, uint64_t bytes)
{
	switch (layout) {
	case LIND_LAYOUT_BYTES:
		print_buffer(t, address, bytes);
		break;
	case LIND_LAYOUT_STAT:
		print_stat(t, address);
		break;
	case LIND_LAYOUT_STATX:
		print_statx(t, address);
		break;
	case LIND_LAYOUT_STATFS:
		print_statfs(t, address);
		break;
	case LIND_LAYOUT_POLLFD:
		print_poll(t, address, bytes);
		break;
	case LIND_LAYOUT_EPOLL_EVENT:
		print_epoll(t, address, bytes, false);
		break;
	case LIND_LAYOUT_KSIGACTION:
		print_sigaction(t, address);
		break;
	case LIND_LAYOUT_KERNEL_SIGSET:
		print_signals(t, address);
		break;
	case LIND_LAYOUT_SIGSET_ARG:
		print_sigset_arg(t, address);
		break;
	case LIND_LAYOUT_IOVEC:
		print_iovecs(t, address, bytes / sizeof(struct iovec), -1);
		break;
	case LIND_LAYOUT_FD_SET:
		print_set(t, address);
		break;
	case LIND_LAYOUT_TIMESPEC:
		print_times(t, address, "nsec", bytes);
		break;
	case LIND_LAYOUT_TIMEVAL:
		print_times(t, address, "usec", bytes);
		break;
	case LIND_LAYOUT_ITIMERSPEC:
		print_itimer(t, address, "nsec");
		break;
	case LIND_LAYOUT_ITIMERVAL:
		print_itimer(t, address, "usec");
		break;
	case LIND_LAYOUT_SOCKADDR:
		print_sockaddr(t, address, bytes);
		break;
	case LIND_LAYOUT_MSGHDR:
		print_msghdr(t, address, -1);
		break;
	case LIND_LAYOUT_KERNEL_RUSAGE:
		print_rusage(t, address);
		break;
	case LIND_LAYOUT_UTSNAME:
		print_utsname(t, address);
		break;
	case LIND_LAYOUT_FLOCK:
		print_flock(t, address);
		break;
	case LIND_LAYOUT_RLIMIT:
		print_rlimit(t, address);
		break;
	case LIND_LAYOUT_INT:
		print_numbers(t, address, 4, bytes, true);
		break;
	case LIND_LAYOUT_INT2:
		print_numbers(t, address, 4, 8, true);
		break;
	case LIND_LAYOUT_UINT:
		print_numbers(t, address, 4, bytes, false);
		break;
	case LIND_LAYOUT_LONG:
		print_numbers(t, address, 8, bytes, true);
		break;
	default:
		text_add(t, address.value ? "%#llx" : "NULL", (unsigned long long)address.value);
		break;
	}
}
