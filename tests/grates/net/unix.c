/* Unix sockets, by names that others change, and descriptors in messages. */
#include "client.h"

static volatile int done;

static struct sockaddr_un path(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strncpy(un.sun_path, name, sizeof un.sun_path - 1);
	return un;
}

static void *swap_links(void *unused)
{
	while (!done) {
		symlink("good", "moving.new");
		rename("moving.new", "moving");
		symlink("bad", "moving.new");
		rename("moving.new", "moving");
	}
	return unused;
}

/* In a directory with listening sockets good and bad; only good is allowed. */
static void unixes(void)
{
	static const char *const names[] = { "good", "bad", "./good", "link-to-good", "link-to-bad", "good/../bad",
		"sub/../bad", "none" };
	struct sockaddr_un un, to_bad = path("bad");
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &to_bad, .msg_namelen = sizeof to_bad, .msg_iov = &iov, .msg_iovlen = 1 };
	pthread_t t;
	int worked = 0, denied = 0;

	symlink("good", "link-to-good");
	symlink("bad", "link-to-bad");
	mkdir("sub", 0700);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		un = path(names[i]);
		say(names[i], connect(fresh(AF_UNIX, SOCK_STREAM), AS(un)));
	}
	say("dgram", sendto(fresh(AF_UNIX, SOCK_DGRAM), "x", 1, 0, AS(to_bad)) < 0);
	say("sendmsg", sendmsg(fresh(AF_UNIX, SOCK_DGRAM), &m, 0) < 0);
	un = path("made");
	say("bind", bind(fresh(AF_UNIX, SOCK_STREAM), AS(un)));
	un = path("sub/made");
	say("bind", bind(fresh(AF_UNIX, SOCK_STREAM), AS(un)));
	un = path("");
	memcpy(un.sun_path + 1, "name", 4);
	say("abstract", bind(fresh(AF_UNIX, SOCK_STREAM), (struct sockaddr *)&un, sizeof(sa_family_t) + 5));
	say("autobind", bind(fresh(AF_UNIX, SOCK_STREAM), (struct sockaddr *)&un, sizeof(sa_family_t)));
	pthread_create(&t, NULL, swap_links, NULL);
	un = path("moving");
	for (int i = 0; i < 500 || !worked || !denied; i++) {
		int fd = fresh(AF_UNIX, SOCK_STREAM);

		if (connect(fd, AS(un)) == 0)
			worked++;
		else
			denied += errno == EACCES;
		close(fd);
	}
	done = 1;
	pthread_join(t, NULL);
	printf("race %d %d\n", worked > 0, denied > 0);
}

/* PATH: gets descriptors by a message, one at a time, and says what came. */
static void rights(void)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct sockaddr_un un = path(arg[0]);
	int fd = fresh(AF_UNIX, SOCK_STREAM);
	char byte;

	say("connect", connect(fd, AS(un)));
	for (;;) {
		struct iovec iov = { &byte, 1 };
		struct msghdr m = {
			.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control
		};
		struct cmsghdr *c;

		if (recvmsg(fd, &m, 0) <= 0)
			break;
		c = CMSG_FIRSTHDR(&m);
		printf("got %d cut %d ", c ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0,
		    !!(m.msg_flags & MSG_CTRUNC));
	}
	puts("");
}

/* PATH: a message with a descriptor and an address of the network. */
static void rights_to_address(void)
{
	struct sockaddr_in in = at("127.0.0.1", atoi(arg[0]));
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &in,
		.msg_namelen = sizeof in,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int zero = 0;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof zero);
	memcpy(CMSG_DATA(c), &zero, sizeof zero);
	say("with rights", sendmsg(fresh(AF_INET, SOCK_DGRAM), &m, 0) < 0);
	puts("");
}

const struct test unix_tests[] = {
	{ "unixes", unixes },
	{ "rights", rights },
	{ "rights_to_address", rights_to_address },
	{ NULL, NULL },
};
