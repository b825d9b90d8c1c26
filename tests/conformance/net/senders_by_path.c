/* The sender of a message to a path, and the other end of a connection to one, are told as what
 * they are and claim to be: also behind a grate that judges paths. */
#include "check.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHER_USER = 1234, OTHER_GROUP = 2345 };

static struct sockaddr_un at = { AF_UNIX, "receiver" }, listens = { AF_UNIX, "listener" };

static int bound(struct sockaddr_un *name, int kind)
{
	int fd = socket(AF_UNIX, kind, 0);

	NEED(fd >= 0);
	NEED(bind(fd, (struct sockaddr *)name, sizeof *name) == 0);
	CHECK_EQ(chmod(name->sun_path, 0777), 0);
	return fd;
}

static void comes_from(int fd, pid_t pid, uid_t uid, gid_t gid)
{
	_Alignas(8) char control[CMSG_SPACE(sizeof(struct ucred))];
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
	};
	struct ucred cred = { -7, 7, 7 };

	CHECK_EQ(recvmsg(fd, &message, MSG_DONTWAIT), 1);
	if (CHECK(CMSG_FIRSTHDR(&message)))
		memcpy(&cred, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof cred);
	CHECK_EQ(cred.pid, pid);
	CHECK_EQ(cred.uid, uid);
	CHECK_EQ(cred.gid, gid);
}

/* By sendmsg, with a claim if there is one. */
static ssize_t sends(int fd, const struct ucred *claim)
{
	_Alignas(8) char control[CMSG_SPACE(sizeof *claim)] = { 0 };
	struct iovec part = { "x", 1 };
	struct msghdr message = { .msg_name = &at, .msg_namelen = sizeof at, .msg_iov = &part, .msg_iovlen = 1 };

	if (claim) {
		message.msg_control = control;
		message.msg_controllen = sizeof control;
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof *claim), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_CREDENTIALS
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), claim, sizeof *claim);
	}
	return sendmsg(fd, &message, 0);
}

static void child(int changes, pid_t parent)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), stream = socket(AF_UNIX, SOCK_STREAM, 0);
	struct ucred claim;

	check_failures = 0;
	if (changes) {
		CHECK_EQ(setgroups(0, NULL), 0);
		CHECK_EQ(setregid(OTHER_GROUP, OTHER_GROUP), 0);
		CHECK_EQ(setreuid(OTHER_USER, OTHER_USER), 0);
	}
	CHECK_EQ(sendto(fd, "x", 1, 0, (struct sockaddr *)&at, sizeof at), 1);
	CHECK_EQ(sends(fd, NULL), 1);
	claim = (struct ucred){ getpid(), getuid(), getgid() };
	CHECK_EQ(sends(fd, &claim), 1);
	if (changes) {
		claim.uid = 0;
		CHECK_ERRNO(sends(fd, &claim), EPERM);
		claim = (struct ucred){ parent, getuid(), getgid() };
		CHECK_ERRNO(sends(fd, &claim), EPERM);
	}
	CHECK_EQ(connect(stream, (struct sockaddr *)&listens, sizeof listens), 0);
	CHECK_EQ(write(stream, "x", 1), 1);
	fflush(stdout);
	_exit(check_failures);
}

int main(void)
{
	int on = 1, status = -1, changes = geteuid() == 0, receiver = bound(&at, SOCK_DGRAM),
	    listener = bound(&listens, SOCK_STREAM), one;
	uid_t uid = changes ? OTHER_USER : getuid();
	gid_t gid = changes ? OTHER_GROUP : getgid();
	struct ucred cred = { -7, 7, 7 };
	socklen_t len = sizeof cred;
	siginfo_t ended;
	pid_t pid;

	CHECK_EQ(chmod(".", 0777), 0);
	CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQ(setsockopt(receiver, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
	CHECK_EQ(listen(listener, 1), 0);
	NEED((pid = fork()) >= 0);
	if (!pid)
		child(changes, getppid());
	/* All is sent, or was refused: nothing below waits. The child keeps its number. */
	NEED(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) == 0);
	for (int i = 0; i < 3; i++)
		comes_from(receiver, pid, uid, gid);
	NEED((one = accept(listener, NULL, NULL)) >= 0);
	CHECK_EQ(getsockopt(one, SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
	CHECK_EQ(cred.pid, pid);
	CHECK_EQ(cred.uid, uid);
	CHECK_EQ(cred.gid, gid);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	unlink("receiver");
	unlink("listener");
	return check_done();
}
