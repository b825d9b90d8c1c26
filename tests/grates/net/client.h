/* Shared parts of the programs that try the network. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/raw.h>
#include <netinet/in.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RACERS 16
#define AS(a)  (struct sockaddr *)&(a), sizeof(a)

struct test {
	const char *name;
	void (*run)(void);
};

/* datagrams.c, names.c, unix.c. Each ends with one that has no name. */
extern const struct test datagram_tests[], name_tests[], unix_tests[];

/* The arguments behind the test's name. */
extern char **arg;

static inline void say(const char *what, int failed)
{
	printf("%s %d ", what, failed ? errno : 0);
}

static inline struct sockaddr_in at(const char *ip, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	if (inet_pton(AF_INET, ip, &in.sin_addr) != 1)
		exit(2);
	return in;
}

static inline struct sockaddr_in6 at6(const char *ip, int port)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };

	if (inet_pton(AF_INET6, ip, &in.sin6_addr) != 1)
		exit(2);
	return in;
}

static inline struct sockaddr_in6 mapped(const char *ip, int port)
{
	char text[64];

	snprintf(text, sizeof text, "::ffff:%s", ip);
	return at6(text, port);
}

static inline int fresh(int domain, int type)
{
	int fd = socket(domain, type, 0);

	if (fd < 0)
		exit(3);
	return fd;
}

static inline int udp_to(int port)
{
	struct sockaddr_in in = at("127.0.0.1", port);
	int fd = fresh(AF_INET, SOCK_DGRAM);

	if (connect(fd, AS(in)))
		printf("resolver %d ", errno);
	return fd;
}
