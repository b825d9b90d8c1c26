/*
 * Does what programs do in ordinary runs, for policies that are learned from them: temporary names,
 * many files, sockets with free ports and names. `life WHAT [ELSE]`: with a second word it does one
 * thing more, which the policy does not know.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_file(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	need(fd >= 0 && write(fd, "x", 1) == 1 && !close(fd), name);
}

/* As editors and compilers do it: a file of a made-up name that takes the place of one, a directory
 * to work in. */
static void temporary(const char *more)
{
	char file[] = "/grates-test/life/new.XXXXXX", dir[] = "/grates-test/life/workXXXXXX", inside[80];
	int fd = mkstemp(file);

	need(fd >= 0 && write(fd, "x", 1) == 1 && !close(fd), file);
	need(!rename(file, "/grates-test/life/kept"), "rename");
	need(!!mkdtemp(dir), dir);
	snprintf(inside, sizeof inside, "%s/part", dir);
	write_file(inside);
	need(!unlink(inside) && !rmdir(dir), "clean");
	if (more)
		write_file("/grates-test/life/other");
}

static void many(const char *more)
{
	char name[80];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "/grates-test/life/part-%d", i);
		write_file(name);
		need(!chmod(name, 0600), name);
	}
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "/grates-test/life/part-%d", i);
		need(!unlink(name), name);
	}
	if (more)
		need(!chmod("/grates-test/life", 04755), "chmod");
}

static void *serve(void *listening)
{
	int fd = accept(*(int *)listening, NULL, NULL);
	char byte;

	need(fd >= 0 && read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1 && !close(fd), "serve");
	return NULL;
}

static void talk(int listening, const struct sockaddr *to, socklen_t length)
{
	int fd = socket(to->sa_family, SOCK_STREAM, 0);
	pthread_t thread;
	char byte = 'x';

	need(!listen(listening, 1), "listen");
	pthread_create(&thread, NULL, serve, &listening);
	need(!connect(fd, to, length), "connect");
	need(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1 && !close(fd), "talk");
	pthread_join(thread, NULL);
	close(listening);
}

static void over_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (*path == '/'));
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, path, strlen(path));
	if (*path == '@')
		a.sun_path[0] = 0;
	need(!bind(fd, (struct sockaddr *)&a, length), path);
	talk(fd, (struct sockaddr *)&a, length);
	if (*path == '/')
		need(!unlink(path), path);
}

static void sockets(const char *more)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	char dir[] = "/grates-test/life/sockXXXXXX", path[80], byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	socklen_t length = sizeof in;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	need(!bind(fd, (struct sockaddr *)&in, sizeof in) && !getsockname(fd, (struct sockaddr *)&in, &length), "bind");
	talk(fd, (struct sockaddr *)&in, sizeof in);
	in.sin_port = htons(9);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	need(sendto(fd, &byte, 1, 0, (struct sockaddr *)&in, sizeof in) == 1, "sendto");
	need(!connect(fd, (struct sockaddr *)&in, sizeof in), "connect");
	/* Nobody listens there, which a connected socket may be told. */
	need(sendmsg(fd, &message, 0) == 1 || errno == ECONNREFUSED, "sendmsg");
	close(fd);
	need(!!mkdtemp(dir), dir);
	snprintf(path, sizeof path, "%s/s", dir);
	over_unix(path);
	need(!rmdir(dir), "rmdir");
	over_unix("@life");
	if (more) {
		in.sin_port = htons(10);
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		need(sendto(fd, &byte, 1, 0, (struct sockaddr *)&in, sizeof in) == 1, "sendto");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : NULL;

	(void)mkdir("/grates-test/life", 0755);
	if (!strcmp(what, "temporary"))
		temporary(more);
	else if (!strcmp(what, "many"))
		many(more);
	else if (!strcmp(what, "sockets"))
		sockets(more);
	else
		return 2;
	puts("done");
	return 0;
}
