/* An open socket file has a name as well, /proc/self/fd/N, that a unix address may be, also when
 * its own name leads elsewhere. */
#include "check.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int attempt(int (*call)(int, const struct sockaddr *, socklen_t), int fd, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(address.sun_path, name);
	return call(fd, (struct sockaddr *)&address, sizeof address);
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
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), file;
	char link[40];

	NEED(attempt(bind, listener, "s") == 0 && listen(listener, 10) == 0);
	NEED((file = open("s", O_PATH)) >= 0);
	snprintf(link, sizeof link, "/proc/self/fd/%d", file);
	CHECK_EQ(connects(link), 0);
	CHECK_EQ(rename("s", "moved"), 0);
	CHECK_EQ(connects(link), 0);
	close(check_file("s", ""));
	CHECK_ERRNO(connects("s"), ECONNREFUSED);
	CHECK_EQ(connects(link), 0);
	CHECK_EQ(unlink("s"), 0);
	CHECK_EQ(unlink("moved"), 0);
	return check_done();
}
