/* Names of unix sockets start in the working directory, and get the mask, of the program that gives
 * them: whoever looks at them on the way. `sockets DIRECTORY`, prints what Linux would, and what is
 * in the directory then. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un name;

static void called(const char *path)
{
	name.sun_family = AF_UNIX;
	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
}

static void say(const char *what, long r)
{
	printf("%s %d\n", what, r < 0 ? errno : 0);
}

static int fresh(int kind)
{
	return socket(AF_UNIX, kind, 0);
}

static void reach(int kind, const char *path)
{
	struct iovec byte = { "x", 1 };
	struct msghdr m = { .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &byte, .msg_iovlen = 1 };

	called(path);
	say("connect", connect(fresh(kind), (struct sockaddr *)&name, sizeof name));
	if (kind != SOCK_DGRAM)
		return;
	say("sendto", sendto(fresh(kind), "x", 1, 0, (struct sockaddr *)&name, sizeof name));
	say("sendmsg", sendmsg(fresh(kind), &m, 0));
}

static void make(int kind, mode_t mask, const char *path)
{
	int fd = fresh(kind);

	umask(mask);
	called(path);
	say("bind", bind(fd, (struct sockaddr *)&name, sizeof name));
	if (kind == SOCK_STREAM)
		say("listen", listen(fd, 4));
	reach(kind, path);
}

static void show(const char *path)
{
	struct stat st;

	printf("%s %o\n", path, stat(path, &st) ? 0 : st.st_mode);
}

int main(int argc, char **argv)
{
	char whole[PATH_MAX];

	if (argc < 2 || chdir(argv[1]))
		return perror("chdir"), 1;
	make(SOCK_STREAM, 0077, "stream");
	make(SOCK_DGRAM, 0027, "datagram");
	snprintf(whole, sizeof whole, "%s/whole", argv[1]);
	make(SOCK_STREAM, 0, whole);
	show("stream");
	show("datagram");
	show("whole");
	return 0;
}
