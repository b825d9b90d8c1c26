/* CLONE_NEWIPC: System V objects and message queues of a child's own. */
#include "../check.h"
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>

static char stack[128 << 10] __attribute__((aligned(16)));
static key_t key;
static char queue[32];

static void name_of(const char *kind, char *to, size_t room)
{
	char path[40];
	ssize_t got;

	snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
	got = readlink(path, to, room - 1);
	CHECK(got > 0);
	to[got > 0 ? got : 0] = 0;
}

/* Whether /proc/sysvipc lists an object with our key. */
static int is_listed(const char *kind)
{
	char path[40], line[400];
	int found = 0;
	FILE *list;

	snprintf(path, sizeof path, "/proc/sysvipc/%s", kind);
	list = fopen(path, "r");
	NEED(list != NULL);
	while (fgets(line, sizeof line, list))
		found |= atol(line) == key;
	fclose(list);
	return found;
}

static void check_nothing_there(void)
{
	CHECK_ERRNO(shmget(key, 100, 0600), ENOENT);
	CHECK_ERRNO(semget(key, 1, 0600), ENOENT);
	CHECK_ERRNO(msgget(key, 0600), ENOENT);
	CHECK_ERRNO(mq_open(queue, O_RDWR), ENOENT);
	CHECK_ERRNO(mq_unlink(queue), ENOENT);
	CHECK(!is_listed("shm") && !is_listed("sem") && !is_listed("msg"));
}

/* Runs in a namespace that has just begun. Objects of the same names are others. */
static void check_own_objects(void)
{
	struct {
		long kind;
		char text[8];
	} message = { 1, "inside" };
	struct mq_attr few = { .mq_maxmsg = 2, .mq_msgsize = 16 }, has;
	int shm, sem, msg, status;
	mqd_t mq;
	pid_t child;

	check_nothing_there();
	CHECK((shm = shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0600)) >= 0);
	CHECK((sem = semget(key, 2, IPC_CREAT | IPC_EXCL | 0600)) >= 0);
	CHECK((msg = msgget(key, IPC_CREAT | IPC_EXCL | 0600)) >= 0);
	CHECK((mq = mq_open(queue, O_RDWR | O_CREAT | O_EXCL, 0600, &few)) >= 0);
	CHECK(is_listed("shm") && is_listed("sem") && is_listed("msg"));
	CHECK_EQ(semctl(sem, 1, SETVAL, 7), 0);
	CHECK_EQ(msgsnd(msg, &message, sizeof message.text, 0), 0);
	/* Children are in it too. */
	if (!(child = fork())) {
		CHECK_EQ(shmget(key, 0, 0), shm);
		CHECK_EQ(semctl(sem, 1, GETVAL), 7);
		CHECK_EQ(msgrcv(msg, &message, sizeof message.text, 0, IPC_NOWAIT), (ssize_t)sizeof message.text);
		CHECK_EQ(mq_unlink(queue), 0);
		_exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	/* Its end was not that of the namespace. */
	CHECK_EQ(semctl(sem, 1, GETVAL), 7);
	CHECK_EQ(mq_getattr(mq, &has), 0);
	CHECK_EQ(has.mq_maxmsg, 2);
}

static int begins_with_nothing(void *unused)
{
	(void)unused;
	check_nothing_there();
	return check_done();
}

static void check_flags(void)
{
	CHECK_ERRNO(
	    clone(begins_with_nothing, stack + sizeof stack, CLONE_NEWIPC | CLONE_SYSVSEM | SIGCHLD, NULL), EINVAL);
}

/* A descriptor and an attachment go along. SEM_UNDO takes effect. */
static void check_leaving(int shm, int sem, mqd_t mq)
{
	struct sembuf take = { .sem_num = 0, .sem_op = -1, .sem_flg = SEM_UNDO };
	char before[40], after[40], again[40];
	struct shmid_ds stat;
	char *attached = shmat(shm, NULL, 0);
	pid_t child;
	int status;

	NEED(attached != (void *)-1);
	CHECK_EQ(semop(sem, &take, 1), 0);
	name_of("ipc", before, sizeof before);
	CHECK_EQ(unshare(CLONE_NEWIPC), 0);
	name_of("ipc", after, sizeof after);
	CHECK(strncmp(before, "ipc:[", 5) == 0 && strcmp(before, after) != 0);
	CHECK_ERRNO(shmctl(shm, IPC_STAT, &stat), EINVAL);
	CHECK_ERRNO(semctl(sem, 0, GETVAL), EINVAL);
	CHECK_STR(attached, "outside");
	strcpy(attached, "from within");
	check_own_objects();
	CHECK_EQ(shmdt(attached), 0);
	CHECK_EQ(mq_send(mq, "m", 1, 0), 0);
	check_flags();
	child = clone(begins_with_nothing, stack + sizeof stack, CLONE_NEWIPC | SIGCHLD, NULL);
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(is_listed("shm"));
	name_of("ipc", again, sizeof again);
	CHECK_STR(again, after);
}

int main(void)
{
	struct mq_attr other = { .mq_maxmsg = 5, .mq_msgsize = 8192 };
	struct shmid_ds stat;
	char *attached, text[8192];
	int shm, sem, status;
	mqd_t mq;
	pid_t child;

	key = 0x4c490000 + (getpid() & 0xffff);
	snprintf(queue, sizeof queue, "/namespace-%d", getpid());
	if (geteuid()) {
		CHECK_ERRNO(unshare(CLONE_NEWIPC), EPERM);
		CHECK_ERRNO(clone(begins_with_nothing, stack + sizeof stack, CLONE_NEWIPC | SIGCHLD, NULL), EPERM);
		return check_done();
	}
#ifndef __wasm__
	if (!(child = fork()))
		_exit(unshare(CLONE_NEWIPC) != 0);
	if (waitpid(child, &status, 0) != child || status)
		check_skip("no namespace for objects of its own");
#endif
	CHECK((shm = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600)) >= 0);
	CHECK((sem = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600)) >= 0);
	CHECK((mq = mq_open(queue, O_RDWR | O_CREAT | O_EXCL, 0600, &other)) >= 0);
	CHECK_EQ(semctl(sem, 0, SETVAL, 1), 0);
	attached = shmat(shm, NULL, 0);
	NEED(attached != (void *)-1);
	strcpy(attached, "outside");
	if (!(child = fork())) {
		check_leaving(shm, sem, mq);
		_exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	/* The objects of the child are gone, and those that it left are as they were. */
	CHECK_ERRNO(msgget(key, 0600), ENOENT);
	CHECK_EQ(semctl(sem, 0, GETVAL), 1);
	CHECK_STR(attached, "from within");
	CHECK_EQ(mq_receive(mq, text, sizeof text, NULL), 1);
	CHECK_EQ(shmctl(shm, IPC_STAT, &stat), 0);
	CHECK_EQ(stat.shm_nattch, 1);
	CHECK_EQ(shmctl(shm, IPC_RMID, NULL), 0);
	CHECK_EQ(semctl(sem, 0, IPC_RMID), 0);
	CHECK_EQ(mq_unlink(queue), 0);
	return check_done();
}
