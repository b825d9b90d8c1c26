/* System V message queues: msgget, msgsnd, msgrcv, msgctl. */
#include "check.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <time.h>

static struct {
	long type;
	char text[9000];
} m;

static int send(int id, long type, const char *text, int flags)
{
	m.type = type;
	strcpy(m.text, text);
	return msgsnd(id, &m, strlen(text) + 1, flags);
}

static const char *receive(int id, long type, int flags)
{
	memset(&m, 0, sizeof m);
	return msgrcv(id, &m, sizeof m.text, type, flags) < 0 ? NULL : m.text;
}

int main(void)
{
	key_t key = (key_t)(0x4e000000 | (getpid() & 0xffffff));
	struct msqid_ds ds;
	pid_t child;
	int id, status, n;

	CHECK_ERRNO(msgget(key, 0600), ENOENT);
	if ((id = msgget(key, IPC_CREAT | IPC_EXCL | 0600)) < 0 && errno == ENOSYS)
		check_skip("no System V message queues here");
	NEED(id >= 0);
	CHECK_EQ(msgget(key, 0), id);
	CHECK_ERRNO(msgget(key, IPC_CREAT | IPC_EXCL | 0600), EEXIST);
	CHECK_EQ(send(id, 3, "three", 0), 0);
	CHECK_EQ(send(id, 1, "one", 0), 0);
	CHECK_EQ(send(id, 2, "two", 0), 0);
	CHECK_EQ(send(id, 1, "one again", 0), 0);
	NEED(msgctl(id, IPC_STAT, &ds) == 0);
	CHECK_EQ(ds.msg_qnum, 4);
	CHECK_EQ(ds.msg_lspid, getpid());
	CHECK_EQ(ds.msg_lrpid, 0);
	CHECK(ds.msg_stime > 0);
	CHECK_EQ(ds.msg_rtime, 0);
	CHECK_STR(receive(id, 2, 0), "two");
	CHECK_EQ(m.type, 2);
	CHECK_STR(receive(id, -3, 0), "one");
	CHECK_STR(receive(id, 0, 0), "three");
	CHECK_ERRNO((void *)receive(id, 7, IPC_NOWAIT), ENOMSG);
	CHECK_ERRNO((void *)receive(id, 1, IPC_NOWAIT | MSG_EXCEPT), ENOMSG);
	CHECK_ERRNO(msgrcv(id, &m, 3, 0, 0), E2BIG);
	CHECK_EQ(msgrcv(id, &m, 3, 0, MSG_NOERROR), 3);
	CHECK_EQ(memcmp(m.text, "one", 3), 0);
	CHECK_ERRNO((void *)receive(id, 0, IPC_NOWAIT), ENOMSG);
	m.type = 1;
	CHECK_EQ(msgsnd(id, &m, 0, 0), 0);
	CHECK_EQ(msgrcv(id, &m, sizeof m.text, 0, 0), 0);

	CHECK_ERRNO(send(id, 0, "x", 0), EINVAL);
	CHECK_ERRNO(send(id, -1, "x", 0), EINVAL);
	m.type = 1;
	CHECK_ERRNO(msgsnd(id, &m, 8193, 0), EINVAL);
	CHECK_ERRNO(msgsnd(-1, &m, 1, 0), EINVAL);
	CHECK_ERRNO(msgrcv(id, &m, (size_t)-1, 0, IPC_NOWAIT), EINVAL);

	/* A full queue, and one that is empty again. */
	for (n = 0; msgsnd(id, &m, 8192, IPC_NOWAIT) == 0; n++)
		;
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(n, 2);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(send(id, 5, "at last", 0) ? 1 : 0);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	CHECK_EQ(waitpid(child, &status, WNOHANG), 0);
	CHECK_EQ(msgrcv(id, &m, 8192, 0, 0), 8192);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_STR(receive(id, 5, 0), "at last");
	CHECK_EQ(msgrcv(id, &m, 8192, 0, 0), 8192);

	NEED((child = fork()) >= 0);
	if (!child)
		_exit(receive(id, 9, 0) && !strcmp(m.text, "nine") ? 0 : 1);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	CHECK_EQ(send(id, 8, "eight", 0), 0);
	CHECK_EQ(send(id, 9, "nine", 0), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	NEED(msgctl(id, IPC_STAT, &ds) == 0);
	CHECK_EQ(ds.msg_lrpid, child);
	ds.msg_qbytes = 100;
	CHECK_EQ(msgctl(id, IPC_SET, &ds), 0);
	m.type = 1;
	CHECK_ERRNO(msgsnd(id, &m, 101, IPC_NOWAIT), EAGAIN);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(receive(id, 7, 0) == NULL && errno == EIDRM ? 0 : 1);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	CHECK_EQ(msgctl(id, IPC_RMID, NULL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_ERRNO(msgctl(id, IPC_STAT, &ds), EINVAL);
	return check_done();
}
