/* Tests who sent a message: SO_PASSCRED and SCM_CREDENTIALS, of processes that share a socket, of
 * what is written and sent, in parts, and of claims. */
#include "check.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { NONE = -7, OTHER_USER = 1234, OTHER_GROUP = 2345, LARGE = 100000 };

static char large[LARGE];

/* musl's macro compares numbers of different kinds. */
static struct cmsghdr *next(struct msghdr *message, struct cmsghdr *c)
{
	char *end = (char *)message->msg_control + message->msg_controllen,
	     *at = (char *)c + CMSG_SPACE(c->cmsg_len - CMSG_LEN(0));

	return at + sizeof *c <= end ? (struct cmsghdr *)at : NULL;
}

struct received {
	ssize_t bytes;
	int flags, descriptors;
	struct ucred cred;
};

static struct received receive(int fd, void *to, size_t size, size_t room)
{
	_Alignas(8) char control[256];
	struct iovec part = { to, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room };
	struct received got = { .cred = { NONE, NONE, NONE } };

	got.bytes = recvmsg(fd, &message, 0);
	got.flags = message.msg_flags;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = next(&message, c)) {
		CHECK_EQ(c->cmsg_level, SOL_SOCKET);
		if (c->cmsg_type == SCM_CREDENTIALS) {
			CHECK_EQ(c->cmsg_len, CMSG_LEN(sizeof got.cred));
			memcpy(&got.cred, CMSG_DATA(c), sizeof got.cred);
		} else {
			int *files = (int *)CMSG_DATA(c);

			CHECK_EQ(c->cmsg_type, SCM_RIGHTS);
			got.descriptors = (c->cmsg_len - CMSG_LEN(0)) / sizeof *files;
			for (int i = 0; i < got.descriptors; i++)
				CHECK_EQ(close(files[i]), 0);
		}
	}
	return got;
}

/* Receives `size` bytes, in whatever parts, all of them from one. */
static void comes_from(int fd, size_t size, pid_t pid, uid_t uid, gid_t gid)
{
	while (size) {
		struct received got = receive(fd, large, size, 256);

		NEED(got.bytes > 0);
		CHECK_EQ(got.cred.pid, pid);
		CHECK_EQ(got.cred.uid, uid);
		CHECK_EQ(got.cred.gid, gid);
		CHECK_EQ(got.flags & MSG_CTRUNC, 0);
		CHECK_EQ(got.descriptors, 0);
		size -= got.bytes;
	}
}

static void comes_from_child(int fd, size_t size, pid_t child)
{
	comes_from(fd, size, child, getuid(), getgid());
}

static int asks(int fd)
{
	return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int));
}

static int ended(pid_t child)
{
	int status = -1;

	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

/* Sends something in each way there is; the sizes are those that `in_each_way` expects. */
static void sends(int fd)
{
	struct iovec parts[2] = { { "ab", 2 }, { "cde", 3 } };
	struct mmsghdr many[2] = { { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = parts + 1, .msg_iovlen = 1 } } };
	int failed = 0;

	failed += write(fd, "x", 1) != 1;
	failed += writev(fd, parts, 2) != 5;
	failed += send(fd, "xyz", 3, 0) != 3;
	failed += sendmsg(fd, &many[0].msg_hdr, 0) != 2;
	failed += sendmmsg(fd, many, 2, 0) != 2;
	_exit(failed);
}

static void in_each_way(int kind)
{
	static const int sizes[] = { 1, 5, 3, 2, 2, 3 };
	int pair[2];
	pid_t child;

	NEED(socketpair(AF_UNIX, kind, 0, pair) == 0);
	/* Before anybody asks, nobody is named. */
	CHECK_EQ(write(pair[1], "x", 1), 1);
	CHECK_EQ(asks(pair[0]), 0);
	comes_from(pair[0], 1, 0, 65534, 65534);
	for (int i = 0; i < 2; i++) {
		NEED((child = fork()) >= 0);
		if (!child)
			sends(pair[1]);
		CHECK_EQ(ended(child), 0);
		for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++)
			comes_from_child(pair[0], sizes[j], child);
	}
	CHECK_EQ(write(pair[1], "x", 1), 1);
	comes_from_child(pair[0], 1, getpid());
	/* And the other way: a socket with SO_PASSCRED sends its own credentials. */
	CHECK_EQ(write(pair[0], "x", 1), 1);
	CHECK_EQ(receive(pair[1], large, 1, 256).cred.pid, NONE);
	close(pair[0]);
	close(pair[1]);
}

/* A listener asks for all that it accepts, also of what was sent before that. */
static void accepted(void)
{
	struct sockaddr_un at = { AF_UNIX, "senders" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), connection;
	pid_t child, grandchild = 0;

	CHECK_EQ(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	CHECK_EQ(asks(listener), 0);
	CHECK_EQ(listen(listener, 5), 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		NEED(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
		CHECK_EQ(write(fd, "abc", 3), 3);
		grandchild = fork();
		if (!grandchild)
			_exit(write(fd, "defgh", 5) != 5);
		CHECK_EQ(ended(grandchild), 0);
		CHECK_EQ(write(fd, &grandchild, sizeof grandchild), sizeof grandchild);
		_exit(0);
	}
	CHECK_EQ(ended(child), 0);
	NEED((connection = accept(listener, NULL, NULL)) >= 0);
	comes_from_child(connection, 2, child);
	comes_from_child(connection, 1, child);
	NEED(recv(connection, large, 5, MSG_PEEK) == 5);
	struct received got = receive(connection, large, 5, 256);
	CHECK_EQ(got.bytes, 5);
	CHECK(got.cred.pid != child);
	comes_from_child(connection, sizeof grandchild, child);
	memcpy(&grandchild, large, sizeof grandchild);
	CHECK_EQ(got.cred.pid, grandchild);
	CHECK_EQ(receive(connection, large, 1, 256).bytes, 0);
	close(connection);
	close(listener);
	unlink("senders");
}

/* To somebody by his name. */
static void datagrams(void)
{
	struct sockaddr_un at = { AF_UNIX, "datagrams" };
	int to = socket(AF_UNIX, SOCK_DGRAM, 0), from = socket(AF_UNIX, SOCK_DGRAM, 0);
	pid_t children[2];

	CHECK_EQ(bind(to, (struct sockaddr *)&at, sizeof at), 0);
	CHECK_EQ(asks(to), 0);
	for (int i = 0; i < 2; i++) {
		NEED((children[i] = fork()) >= 0);
		if (!children[i])
			_exit(sendto(from, "abc", 3, 0, (struct sockaddr *)&at, sizeof at) != 3);
		CHECK_EQ(ended(children[i]), 0);
	}
	comes_from_child(to, 3, children[0]);
	CHECK_EQ(connect(from, (struct sockaddr *)&at, sizeof at), 0);
	CHECK_EQ(write(from, "x", 1), 1);
	comes_from_child(to, 3, children[1]);
	comes_from_child(to, 1, getpid());
	close(from);
	close(to);
	unlink("datagrams");
}

static ssize_t send_with(int fd, struct ucred *claim, int descriptor)
{
	_Alignas(8) char control[256] = { 0 };
	struct iovec part = { "c", 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	size_t used = 0;

	if (claim) {
		*c = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof *claim), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_CREDENTIALS
		};
		memcpy(CMSG_DATA(c), claim, sizeof *claim);
		used += CMSG_SPACE(sizeof *claim);
		c = next(&message, c);
	}
	if (descriptor >= 0) {
		*c = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof descriptor), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
		};
		memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
		used += CMSG_SPACE(sizeof descriptor);
	}
	message.msg_controllen = used;
	return sendmsg(fd, &message, 0);
}

/* The claims that a process may make about itself, and how they come with descriptors and in little
 * space. */
static void claims(void)
{
	struct ucred own = { getpid(), getuid(), getgid() }, other;
	struct received got;
	int pair[2];

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	/* A claim is received even if the receiver asks for credentials only afterwards. */
	CHECK_EQ(send_with(pair[1], &own, -1), 1);
	CHECK_EQ(asks(pair[0]), 0);
	comes_from_child(pair[0], 1, getpid());
	if (geteuid() != 0) {
		other = own;
		other.pid = getppid();
		CHECK_ERRNO(send_with(pair[1], &other, -1), EPERM);
		other = own;
		other.uid++;
		CHECK_ERRNO(send_with(pair[1], &other, -1), EPERM);
		other = own;
		other.gid++;
		CHECK_ERRNO(send_with(pair[1], &other, -1), EPERM);
	}
	CHECK_EQ(send_with(pair[1], &own, pair[0]), 1);
	got = receive(pair[0], large, 1, 256);
	CHECK_EQ(got.cred.pid, getpid());
	CHECK_EQ(got.descriptors, 1);
	CHECK_EQ(got.flags & MSG_CTRUNC, 0);
	CHECK_EQ(send_with(pair[1], NULL, pair[0]), 1);
	got = receive(pair[0], large, 1, CMSG_SPACE(sizeof own));
	CHECK_EQ(got.cred.pid, getpid());
	CHECK_EQ(got.descriptors, 0);
	CHECK_EQ(got.flags & MSG_CTRUNC, MSG_CTRUNC);
	CHECK_EQ(write(pair[1], "x", 1), 1);
	got = receive(pair[0], large, 1, 0);
	CHECK_EQ(got.flags & MSG_CTRUNC, MSG_CTRUNC);
	CHECK_EQ(write(pair[1], "x", 1), 1);
	got = receive(pair[0], large, 1, CMSG_SPACE(sizeof own));
	CHECK_EQ(got.cred.pid, getpid());
	CHECK_EQ(got.flags & MSG_CTRUNC, 0);
	close(pair[0]);
	close(pair[1]);
}

/* Credentials come only if they were asked for. */
static void unasked(void)
{
	struct received got;
	int pair[2];

	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_EQ(write(pair[1], "abc", 3), 3);
	CHECK_EQ(write(pair[1], "def", 3), 3);
	got = receive(pair[0], large, 6, 256);
	CHECK_EQ(got.bytes, 6);
	CHECK_EQ(got.cred.pid, NONE);
	CHECK_EQ(got.descriptors, 0);
	CHECK_EQ(got.flags & MSG_CTRUNC, 0);
	close(pair[0]);
	close(pair[1]);
}

/* A user who was root is named as what he is now. */
static void changed(void)
{
	struct ucred claim;
	int pair[2];
	pid_t child;

	if (geteuid() != 0 || setgroups(0, NULL))
		return;
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_EQ(asks(pair[0]), 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		CHECK_EQ(write(pair[1], "a", 1), 1);
		claim = (struct ucred){ getpid(), OTHER_USER, OTHER_GROUP };
		CHECK_EQ(send_with(pair[1], &claim, -1), 1);
		CHECK_EQ(setgid(OTHER_GROUP), 0);
		CHECK_EQ(setuid(OTHER_USER), 0);
		CHECK_EQ(write(pair[1], "b", 1), 1);
		claim.uid = 0;
		CHECK_ERRNO(send_with(pair[1], &claim, -1), EPERM);
		fflush(stdout);
		_exit(check_failures);
	}
	CHECK_EQ(ended(child), 0);
	comes_from(pair[0], 1, child, 0, getgid());
	comes_from(pair[0], 1, child, OTHER_USER, OTHER_GROUP);
	comes_from(pair[0], 1, child, OTHER_USER, OTHER_GROUP);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	alarm(30);
	claims();
	for (int kind = SOCK_STREAM; kind <= SOCK_DGRAM; kind++)
		in_each_way(kind);
	in_each_way(SOCK_SEQPACKET);
	unasked();
	accepted();
	datagrams();
	changed();
	return check_done();
}
