/* Names of unix sockets: relative to the working directory, through links, as long as they may be,
 * reused. */
#include "check.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int attempt(int (*call)(int, const struct sockaddr *, socklen_t), int fd, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, name, strlen(name));
	return call(
	    fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name)));
}

static int connects(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), result = attempt(connect, fd, name), error = errno;

	close(fd);
	errno = error;
	return result;
}

int main(void)
{
	struct sockaddr_un got;
	socklen_t length = sizeof got;
	char longest[sizeof got.sun_path + 1];
	int a = socket(AF_UNIX, SOCK_STREAM, 0), b = socket(AF_UNIX, SOCK_STREAM, 0), c;

	NEED(mkdir("d", 0755) == 0 && symlink("d", "l") == 0);
	NEED(attempt(bind, a, "l/../d/s") == 0 && listen(a, 10) == 0);
	CHECK_EQ(connects("d/s"), 0);
	CHECK_EQ(connects("l/s"), 0);
	CHECK_EQ(chdir("d"), 0);
	CHECK_EQ(connects("s"), 0);
	CHECK_EQ(connects("./s"), 0);
	CHECK_ERRNO(connects("d/s"), ENOENT);
	NEED(symlink("s", "alias") == 0);
	CHECK_EQ(connects("alias"), 0);
	CHECK_ERRNO(attempt(bind, b, "s"), EADDRINUSE);
	CHECK_ERRNO(attempt(bind, b, "alias"), EADDRINUSE);
	CHECK_ERRNO(attempt(bind, b, "missing/s"), ENOENT);
	CHECK_ERRNO(attempt(bind, a, "other"), EINVAL);
	CHECK_EQ(unlink("alias"), 0);
	CHECK_EQ(getsockname(a, (struct sockaddr *)&got, &length), 0);
	CHECK_EQ(length, offsetof(struct sockaddr_un, sun_path) + sizeof "l/../d/s");
	CHECK_STR(got.sun_path, "l/../d/s");
	CHECK_EQ(rename("s", "t"), 0);
	CHECK_EQ(connects("t"), 0);
	CHECK_EQ(unlink("t"), 0);
	CHECK_ERRNO(connects("t"), ENOENT);
	close(check_file("plain", ""));
	CHECK_ERRNO(connects("plain"), ECONNREFUSED);
	CHECK_EQ(unlink("plain"), 0);

	/* All 108 bytes, without a NUL. */
	memset(longest, 'n', sizeof longest);
	longest[sizeof got.sun_path] = 0;
	NEED((c = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	CHECK_EQ(attempt(bind, c, longest), 0);
	CHECK_EQ(listen(c, 1), 0);
	CHECK_EQ(connects(longest), 0);
	CHECK_EQ(unlink(longest), 0);
	CHECK_ERRNO(bind(b, (struct sockaddr *)&got, 1), EINVAL);
	CHECK_ERRNO(bind(b, (struct sockaddr *)&got, sizeof got + 1), EINVAL);
	CHECK_EQ(chdir(".."), 0);
	CHECK_EQ(unlink("l"), 0);
	CHECK_EQ(rmdir("d"), 0);
	return check_done();
}
