/* Typed handlers of every shape: what they decide, typed.c looks at. */
#include <lind/grate.h>
#include <stdio.h>
#include <sys/un.h>

LIND_HANDLE(answers, openat);
LIND_HANDLE(alters, rename);
LIND_HANDLE(alters, clock_nanosleep);
LIND_HANDLE(alters, connect);
LIND_HANDLE(alters, setxattr);
LIND_HANDLE(alters, utimensat);
LIND_HANDLE(observes, lseek);
LIND_HANDLE(observes, mmap);
LIND_HANDLE(alters, read);
LIND_HANDLE(answers, fstat);
LIND_HANDLE(answers, geteuid);
LIND_HANDLE(answers, fsync);

int64_t on_openat(const struct lind_call *cx, int dir, const char *path, int flags, mode_t mode)
{
	if (strstr(path, "secret"))
		return -EACCES;
	return lind_forward_openat(cx, dir, path, flags, mode | 0100);
}

static int64_t on_rename(const struct lind_call *cx, const char *old, const char *new)
{
	return lind_forward_rename(cx, new, old);
}

/* A client that wants to sleep for an hour sleeps for a nanosecond. */
static int64_t on_clock_nanosleep(
    const struct lind_call *cx, int clock, int flags, const struct timespec *req, struct lind_arg rem)
{
	static const struct timespec moment = { 0, 1 };

	return lind_forward_clock_nanosleep(cx, clock, flags, req && req->tv_sec == 3600 ? &moment : req, rem);
}

static int64_t on_connect(const struct lind_call *cx, int fd, const struct sockaddr *addr, socklen_t len)
{
	if (addr && addr->sa_family == AF_UNIX && !strcmp(((const struct sockaddr_un *)addr)->sun_path, "/blocked"))
		return -EPERM;
	return lind_forward_connect(cx, fd, addr, len);
}

static int64_t on_setxattr(
    const struct lind_call *cx, const char *path, const char *name, struct lind_arg value, size_t len, int flags)
{
	return strcmp(name, "user.mine") ? lind_forward_setxattr(cx, path, name, value, len, flags) : -EOPNOTSUPP;
}

static int64_t on_utimensat(
    const struct lind_call *cx, int dir, const char *path, const struct timespec *times, int flags)
{
	struct timespec both[2] = { { 1, 0 }, { 2, 0 } };

	if (times)
		both[1].tv_sec = times[1].tv_sec + 1;
	return lind_forward_utimensat(cx, dir, path, both, flags);
}

static int64_t on_lseek(const struct lind_call *cx, int fd, off_t offset, int whence)
{
	return lind_forward_lseek(cx, fd, offset, whence);
}

static int64_t on_mmap(const struct lind_call *cx, uint64_t addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return len == SIZE_MAX ? -E2BIG : lind_forward_mmap(cx, addr, len, prot, flags, fd, offset);
}

/* Reads into our memory and gives that to the client in capitals. */
static int64_t on_read(const struct lind_call *cx, int fd, struct lind_arg buf, size_t len)
{
	char text[64];
	long got = lind_forward_read(cx, fd, lind_mine(text), len < sizeof text ? len : sizeof text);
	int r;

	for (long i = 0; i < got; i++)
		text[i] -= text[i] >= 'a' && text[i] <= 'z' ? 32 : 0;
	return got > 0 && (r = lind_write(buf, text, (size_t)got)) < 0 ? r : got;
}

static int64_t on_fstat(const struct lind_call *cx, int fd, struct lind_arg buf)
{
	(void)fd;
	return cx->nr == SYS_fstat && buf.value && cx->caller == cx->target ? -ETXTBSY : -EIO;
}

static int64_t on_geteuid(const struct lind_call *cx)
{
	(void)cx;
	return 4294967294; /* -2 in 32 bits */
}

/* Other calls on the client: the family of a socket, and the position of a file. */
static int64_t on_fsync(const struct lind_call *cx, int fd)
{
	struct sockaddr_storage name;
	socklen_t size = sizeof name;

	if (lind_forward_getsockname(cx, fd, lind_mine(&name), lind_mine(&size)) == 0)
		return name.ss_family;
	return lind_forward_lseek(cx, fd, 0, SEEK_CUR);
}

static bool named(uint32_t nr, const char *name, int error, const char *error_name)
{
	return !strcmp(lind_call_name(nr), name) && !strcmp(lind_errno_name(error), error_name);
}

int main(int argc, char **argv)
{
	if (!named(SYS_read, "read", EPERM, "EPERM") || !named(SYS_use_once, "use_once", ERFKILL, "ERFKILL") ||
	    !named(SYS_openat, "openat", ENOMEM, "ENOMEM") || !named(1003, "copy_handler_table_to_cage", -1, "?") ||
	    !named(1099, "?", 0, "?") || lind_errno_named("ENOENT") != ENOENT || lind_errno_named("ENONE"))
		lind_die("names are wrong");
	return lind_grate_main(argc, argv);
}
