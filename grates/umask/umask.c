/* Permissions that clients' files never have, whatever mask or mode the clients choose. */
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static mode_t forced;

/* The call with the bits taken out of the argument that is a mode. Nothing else is looked at, so
 * nothing is copied. */
static int64_t without_bits(const struct lind_call *c, int at)
{
	struct lind_call changed = *c;

	changed.args[at].value &= ~(uint64_t)forced;
	return lind_forward(&changed);
}

static int64_t mode_1(const struct lind_call *c)
{
	return without_bits(c, 1);
}
static int64_t mode_2(const struct lind_call *c)
{
	return without_bits(c, 2);
}
static int64_t mode_3(const struct lind_call *c)
{
	return without_bits(c, 3);
}

LIND_HANDLE(alters, open, mode_2);
LIND_HANDLE(alters, openat, mode_3);
LIND_HANDLE(alters, creat, mode_1);
LIND_HANDLE(alters, mkdir, mode_1);
LIND_HANDLE(alters, mkdirat, mode_2);
LIND_HANDLE(alters, mknod, mode_1);
LIND_HANDLE(alters, mknodat, mode_2);
LIND_HANDLE(alters, chmod, mode_1);
LIND_HANDLE(alters, fchmod, mode_1);
LIND_HANDLE(alters, fchmodat, mode_2);
LIND_HANDLE(alters, fchmodat2, mode_2);
/* For files without a call in this list (sockets, queues) the kernel's mask does the work: it
 * has the bits from the start. */
LIND_HANDLE(alters, umask);
LIND_HANDLE(answers, openat2);
LIND_HANDLE(alters, setxattr);
LIND_HANDLE(alters, lsetxattr);
LIND_HANDLE(alters, fsetxattr);

static int64_t on_umask(const struct lind_call *cx, mode_t mask)
{
	return lind_forward_umask(cx, mask | forced);
}

/* Its mode is in the client's memory. Programs that get this error use openat. */
static int64_t on_openat2(const struct lind_call *cx, int dir, const char *path, struct lind_arg how, size_t size)
{
	(void)cx, (void)dir, (void)path, (void)how, (void)size;
	return -ENOSYS;
}

/* Access lists are modes by another name. */
static bool is_access_list(const char *name)
{
	return !strncmp(name, "system.posix_acl_", strlen("system.posix_acl_"));
}

static int64_t on_setxattr(
    const struct lind_call *cx, const char *path, const char *name, struct lind_arg value, size_t length, int flags)
{
	return is_access_list(name) ? -EPERM : lind_forward_setxattr(cx, path, name, value, length, flags);
}

static int64_t on_lsetxattr(
    const struct lind_call *cx, const char *path, const char *name, struct lind_arg value, size_t length, int flags)
{
	return is_access_list(name) ? -EPERM : lind_forward_lsetxattr(cx, path, name, value, length, flags);
}

static int64_t on_fsetxattr(
    const struct lind_call *cx, int fd, const char *name, struct lind_arg value, size_t length, int flags)
{
	return is_access_list(name) ? -EPERM : lind_forward_fsetxattr(cx, fd, name, value, length, flags);
}

static const char *force_bits(const char *value)
{
	char *end;
	unsigned long bits = strtoul(value, &end, 8);

	if (*end || end == value || bits > 07777)
		return "must be an octal number of at most 07777";
	forced = (mode_t)bits;
	return NULL;
}

LIND_OPTION("b", "force-bits", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'b', "force-bits", "MODE", "remove these permissions, in octal, from new files (default 077)",
		    force_bits },
	};

	forced = 077;
	lind_options(options, 1, "Removes permissions from files that clients make.", &argc, &argv);
	umask(umask(0) | (forced & 0777));
	return lind_grate_main(argc, argv);
}
