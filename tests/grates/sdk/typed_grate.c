/* Typed handlers of every shape: what they decide, typed.c looks at. */
#include <lind/typed.h>
#include <stdio.h>
#include <sys/un.h>

LIND_ON(openat);
LIND_ALTERS(rename);
LIND_ALTERS(clock_nanosleep);
LIND_ALTERS(connect);
LIND_ALTERS(setxattr);
LIND_ALTERS(utimensat);
LIND_OBSERVES(lseek);
LIND_OBSERVES(mmap);
LIND_ALTERS(read);
LIND_ON(fstat);
LIND_ON(geteuid);

long on_openat(struct lind_cx *cx, int dir, const char *path, int flags, mode_t mode)
{
	if (strstr(path, "secret"))
		return -EACCES;
	return lind_forward_openat(cx, dir, path, flags, mode | 0100);
}

static long on_rename(struct lind_cx *cx, const char *old, const char *new)
{
	return lind_forward_rename(cx, new, old);
}

/* A client that wants to sleep for an hour sleeps for a nanosecond. */
static long on_clock_nanosleep(
    struct lind_cx *cx, int clock, int flags, const struct timespec *req, struct lind_arg rem)
{
	static const struct timespec moment = { 0, 1 };

	return lind_forward_clock_nanosleep(cx, clock, flags, req && req->tv_sec == 3600 ? &moment : req, rem);
}

static long on_connect(struct lind_cx *cx, int fd, const struct sockaddr *addr, socklen_t len)
{
	if (addr && addr->sa_family == AF_UNIX && !strcmp(((const struct sockaddr_un *)addr)->sun_path, "/blocked"))
		return -EPERM;
	return lind_forward_connect(cx, fd, addr, len);
}

static long on_setxattr(
    struct lind_cx *cx, const char *path, const char *name, struct lind_arg value, size_t len, int flags)
{
	return strcmp(name, "user.mine") ? lind_forward_setxattr(cx, path, name, value, len, flags) : -EOPNOTSUPP;
}

static long on_utimensat(struct lind_cx *cx, int dir, const char *path, const struct timespec *times, int flags)
{
	struct timespec both[2] = { { 1, 0 }, { 2, 0 } };

	if (times)
		both[1].tv_sec = times[1].tv_sec + 1;
	return lind_forward_utimensat(cx, dir, path, both, flags);
}

static int64_t on_lseek(struct lind_cx *cx, int fd, off_t offset, int whence)
{
	return lind_forward_lseek(cx, fd, offset, whence);
}

static int64_t on_mmap(struct lind_cx *cx, uint64_t addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return len == SIZE_MAX ? -E2BIG : lind_forward_mmap(cx, addr, len, prot, flags, fd, offset);
}

/* Reads into our memory and gives that to the client in capitals. */
static long on_read(struct lind_cx *cx, int fd, struct lind_arg buf, size_t len)
{
	char text[64];
	long got = lind_forward_read(cx, fd, lind_mine(text), len < sizeof text ? len : sizeof text);
	int r;

	for (long i = 0; i < got; i++)
		text[i] -= text[i] >= 'a' && text[i] <= 'z' ? 32 : 0;
	return got > 0 && (r = lind_write(buf, text, (size_t)got)) < 0 ? r : got;
}

static long on_fstat(struct lind_cx *cx, int fd, struct lind_arg buf)
{
	(void)fd;
	return cx->call->nr == SYS_fstat && buf.value && cx->caller == cx->target ? -ETXTBSY : -EIO;
}

static int64_t on_geteuid(struct lind_cx *cx)
{
	(void)cx;
	return 4294967294; /* -2 in 32 bits */
}

int main(int argc, char **argv)
{
	return lind_grate_main(argc, argv);
}
