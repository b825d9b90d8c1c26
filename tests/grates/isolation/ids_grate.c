/*
 * Handlers that use files for themselves, as root, on the thread of a client that has become
 * somebody else. getpgid opens what root alone may; getsid becomes the user 2000 for the moment;
 * getpriority asks the kernel for the file in the client's name.
 */
#include <errno.h>
#include <fcntl.h>
#include <lind/raw.h>
#include <unistd.h>

static int64_t own(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int64_t on_getpgid(const struct lind_call *call)
{
	(void)call;
	return own("/tmp/ids.secret");
}

static int64_t on_getsid(const struct lind_call *call)
{
	int64_t r;

	(void)call;
	if (lind_call_plain(SYS_setresuid, lind_self(), (uint64_t)-1, 2000, 0, 0))
		return -EPERM;
	r = own("/tmp/ids.secret");
	if (lind_call_plain(SYS_setresuid, lind_self(), (uint64_t)-1, 0, 0, 0))
		return -EPERM;
	return r == -EACCES ? 0 : -EIO;
}

static int64_t on_getpriority(const struct lind_call *call)
{
	struct lind_arg none = { 0, call->target };

	return lind_call(SYS_open, call->target, lind_mine("/tmp/ids.secret"), none, none, none, none, none);
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = {
		{ SYS_getpgid, on_getpgid },
		{ SYS_getsid, on_getsid },
		{ SYS_getpriority, on_getpriority },
	};

	return lind_grate_run(on, 3, argc, argv);
}
