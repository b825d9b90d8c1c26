/* Tests who is at the other end of a unix socket: SO_PEERCRED, SO_PEERGROUPS and SO_PEERPIDFD,
 * across fork, exec and the peer's end. */
#include "check.h"

#include <grp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { OTHER_USER = 1234, OTHER_GROUP = 2345, EXTRA_GROUP = 3456 };

static struct ucred peer(int fd)
{
	struct ucred cred = { -7, 7, 7 };
	socklen_t len = sizeof cred;

	CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
	CHECK_EQ(len, sizeof cred);
	return cred;
}

static void is(int fd, pid_t pid, uid_t uid, gid_t gid)
{
	struct ucred cred = peer(fd);

	CHECK_EQ(cred.pid, pid);
	CHECK_EQ(cred.uid, uid);
	CHECK_EQ(cred.gid, gid);
}

static void is_me(int fd)
{
	is(fd, getpid(), geteuid(), getegid());
}

static int ended(pid_t child)
{
	int status = -1;

	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static int bound(struct sockaddr_un *at, int kind)
{
	int fd = socket(AF_UNIX, kind, 0);
	socklen_t len = at->sun_path[0] ? sizeof *at : offsetof(struct sockaddr_un, sun_path) + 20;

	NEED(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)at, len), 0);
	if (at->sun_path[0])
		CHECK_EQ(chmod(at->sun_path, 0777), 0);
	return fd;
}

static void to(int fd, struct sockaddr_un *at)
{
	socklen_t len = at->sun_path[0] ? sizeof *at : offsetof(struct sockaddr_un, sun_path) + 20;

	CHECK_EQ(connect(fd, (struct sockaddr *)at, len), 0);
}

static void pairs(void)
{
	int pair[2];
	pid_t child, parent = getpid();

	for (int kind = SOCK_STREAM; kind <= SOCK_DGRAM; kind++) {
		NEED(socketpair(AF_UNIX, kind, 0, pair) == 0);
		is_me(pair[0]);
		is_me(pair[1]);
		NEED((child = fork()) >= 0);
		if (!child) {
			check_failures = 0;
			is(pair[1], parent, geteuid(), getegid());
			fflush(stdout);
			_exit(check_failures);
		}
		CHECK_EQ(ended(child), 0);
		close(pair[0]);
		is_me(pair[1]);
		close(pair[1]);
	}
}

static void unconnected(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), inet = socket(AF_INET, SOCK_STREAM, 0), pidfd;
	socklen_t len = sizeof pidfd;

	is(fd, 0, -1, -1);
	is(inet, 0, -1, -1);
	CHECK_ERRNO(getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &pidfd, &len), ENODATA);
	CHECK_ERRNO(setsockopt(fd, SOL_SOCKET, SO_PEERCRED, &pidfd, sizeof pidfd), ENOPROTOOPT);
	close(fd);
	close(inet);
}

/* A child connects, as somebody else if it can, to a socket that listens; says what it saw, and
 * ends. */
static void connects(struct sockaddr_un *at, int kind, int named, int changes)
{
	int listener = bound(at, kind), connection, go[2];
	pid_t child, parent = getpid();
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct sockaddr_un name;
	socklen_t len = sizeof name;
	char c;

	is(listener, 0, -1, -1);
	CHECK_EQ(listen(listener, 5), 0);
	is_me(listener);
	NEED(pipe(go) == 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		struct sockaddr_un own = { AF_UNIX, "client" };
		int fd = named ? bound(&own, kind) : socket(AF_UNIX, kind, 0);

		check_failures = 0;
		close(go[1]);
		if (changes) {
			gid_t extra = EXTRA_GROUP;

			CHECK_EQ(setgroups(1, &extra), 0);
			CHECK_EQ(setregid(OTHER_GROUP, OTHER_GROUP), 0);
			CHECK_EQ(setreuid(OTHER_USER, OTHER_USER), 0);
		}
		to(fd, at);
		is(fd, parent, uid, gid);
		CHECK_EQ(getsockname(fd, (struct sockaddr *)&name, &len), 0);
		CHECK_EQ(len, named ? offsetof(struct sockaddr_un, sun_path) + 7 : sizeof(sa_family_t));
		CHECK_EQ(write(fd, "x", 1), 1);
		CHECK_EQ(read(go[0], &c, 1), 0);
		fflush(stdout);
		_exit(check_failures);
	}
	close(go[0]);
	NEED((connection = accept(listener, (struct sockaddr *)&name, &len)) >= 0);
	if (!named)
		CHECK_EQ(len, sizeof(sa_family_t));
	is(connection, child, changes ? OTHER_USER : uid, changes ? OTHER_GROUP : gid);
	if (changes) {
		gid_t groups[4] = { 0 };

		len = 0;
		CHECK_ERRNO(getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups, &len), ERANGE);
		CHECK_EQ(len, sizeof *groups);
		len = sizeof groups;
		CHECK_EQ(getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups, &len), 0);
		CHECK_EQ(len, sizeof *groups);
		CHECK_EQ(groups[0], EXTRA_GROUP);
	}
	len = sizeof name;
	CHECK_EQ(getpeername(connection, (struct sockaddr *)&name, &len), 0);
	CHECK_EQ(len, named ? offsetof(struct sockaddr_un, sun_path) + 7 : sizeof(sa_family_t));
	close(go[1]);
	CHECK_EQ(ended(child), 0);
	is(connection, child, changes ? OTHER_USER : uid, changes ? OTHER_GROUP : gid);
	close(connection);
	close(listener);
	if (at->sun_path[0])
		unlink(at->sun_path);
	unlink("client");
}

/* A later accept returns the identity of the connecting process, though that has ended. */
static void late(void)
{
	struct sockaddr_un at = { AF_UNIX, "late" };
	int listener = bound(&at, SOCK_STREAM), connection;
	pid_t children[3], later;

	CHECK_EQ(listen(listener, 5), 0);
	for (int i = 0; i < 3; i++) {
		NEED((children[i] = fork()) >= 0);
		if (!children[i]) {
			int fd = socket(AF_UNIX, SOCK_STREAM, 0);

			/* A socket with SO_PASSCRED gets a name when it connects. */
			setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ i == 1 }, sizeof(int));
			to(fd, &at);
			_exit(0);
		}
		CHECK_EQ(ended(children[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		NEED((connection = accept(listener, NULL, NULL)) >= 0);
		is(connection, children[i], geteuid(), getegid());
		close(connection);
	}
	/* A process that calls listen again is the peer from then on. */
	NEED((later = fork()) >= 0);
	if (!later) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		check_failures = 0;
		CHECK_EQ(listen(listener, 5), 0);
		to(fd, &at);
		is_me(fd);
		is_me(listener);
		fflush(stdout);
		_exit(check_failures);
	}
	CHECK_EQ(ended(later), 0);
	is(listener, later, geteuid(), getegid());
	close(listener);
	unlink("late");
}

/* A socket whose connect has failed can be given a name afterwards. */
static void fails_first(void)
{
	struct sockaddr_un at = { AF_UNIX, "nobody" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK_ERRNO(connect(fd, (struct sockaddr *)&at, sizeof at), ENOENT);
	CHECK_EQ(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	CHECK_ERRNO(connect(other, (struct sockaddr *)&at, sizeof at), ECONNREFUSED);
	CHECK_EQ(listen(fd, 1), 0);
	to(other, &at);
	is_me(other);
	close(fd);
	close(other);
	unlink("nobody");
}

static void descriptor(void)
{
	struct sockaddr_un at = { AF_UNIX, "by-descriptor" };
	int listener = bound(&at, SOCK_STREAM), connection, pidfd = -1, go[2];
	socklen_t len = sizeof pidfd;
	pid_t child;

	CHECK_EQ(listen(listener, 5), 0);
	NEED(pipe(go) == 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		char c;

		close(go[1]);
		to(fd, &at);
		_exit(read(go[0], &c, 1) != 0);
	}
	close(go[0]);
	NEED((connection = accept(listener, NULL, NULL)) >= 0);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0) {
		/* Of Linux 6.5. */
		CHECK_EQ(errno, ENOPROTOOPT);
		close(go[1]);
	} else {
		struct pollfd one = { pidfd, POLLIN, 0 };

		CHECK_EQ(len, sizeof pidfd);
		CHECK_EQ(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
		CHECK_EQ(poll(&one, 1, 0), 0);
		close(go[1]);
		CHECK_EQ(poll(&one, 1, 10000), 1);
		close(pidfd);
	}
	CHECK_EQ(ended(child), 0);
	close(connection);
	close(listener);
	unlink("by-descriptor");
}

int main(int argc, char **argv)
{
	struct sockaddr_un path = { AF_UNIX, "listener" }, abstract = { AF_UNIX, "" };
	char number[20];
	int fd;
	pid_t child;

	if (argc == 2) {
		/* After exec the number is the same. */
		is_me(atoi(argv[1]));
		return check_done();
	}
	alarm(30);
	snprintf(abstract.sun_path + 1, 19, "peers-%d-------", (int)getpid());
	pairs();
	unconnected();
	for (int kind = SOCK_STREAM; kind <= SOCK_SEQPACKET; kind += SOCK_SEQPACKET - SOCK_STREAM) {
		connects(&path, kind, 0, 0);
		connects(&path, kind, 1, 0);
		connects(&abstract, kind, 0, 0);
		connects(&abstract, kind, 1, 0);
	}
	if (geteuid() == 0 && !setgroups(0, NULL))
		connects(&abstract, SOCK_STREAM, 0, 1);
	late();
	fails_first();
	descriptor();
	NEED((child = fork()) >= 0);
	if (!child) {
		int pair[2];

		NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		fd = pair[0];
		snprintf(number, sizeof number, "%d", fd);
		execl("/proc/self/exe", argv[0], number, (char *)NULL);
		_exit(99);
	}
	CHECK_EQ(ended(child), 0);
	return check_done();
}
