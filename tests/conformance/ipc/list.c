/* How ipcs(1) lists System V objects: the commands that tell of all of a kind, and those that go by
 * a place in the list. Other objects may exist, and come and go. */
#include "../check.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#ifndef SHM_STAT_ANY
#define SHM_STAT_ANY 15
#endif
#ifndef SEM_STAT_ANY
#define SEM_STAT_ANY 20
#endif
#ifndef MSG_STAT_ANY
#define MSG_STAT_ANY 13
#endif

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

static void segments(void)
{
	static const int ways[] = { SHM_STAT, SHM_STAT_ANY };
	int id = shmget(0x1e57, 10000, IPC_CREAT | IPC_EXCL | 0640), other = shmget(IPC_PRIVATE, 1, 0600);
	struct shmid_ds ds;
	struct shm_info info = { 0 };
	struct shminfo limits = { 0 };

	NEED(id >= 0 && other >= 0);
	char *at = shmat(id, NULL, 0);
	NEED(at != (void *)-1);
	at[5000] = 1;
	int highest = shmctl(0, SHM_INFO, (struct shmid_ds *)&info);
	CHECK(highest >= 1);
	CHECK(info.shm_tot >= 4);
	CHECK(info.shm_rss >= 1);
	highest = shmctl(0, IPC_INFO, (struct shmid_ds *)&limits);
	CHECK(highest >= 1);
	CHECK_EQ(limits.shmmin, 1);
	CHECK(limits.shmmax >= 10000);
	CHECK(limits.shmmni >= 100);
	for (int way = 0; way < 2; way++) {
		int found = 0;
		for (int place = 0; place <= highest; place++) {
			memset(&ds, 0, sizeof ds);
			if (shmctl(place, ways[way], &ds) != id)
				continue;
			found++;
			CHECK_EQ(ds.shm_segsz, 10000);
			CHECK_EQ(ds.shm_perm.mode & 0777, 0640);
			CHECK_EQ(ds.shm_nattch, 1);
			CHECK_EQ(ds.shm_cpid, getpid());
		}
		CHECK_EQ(found, 1);
	}
	CHECK_ERRNO(shmctl(-1, SHM_STAT, &ds), EINVAL);
	CHECK_ERRNO(shmctl(0x7ffffff, SHM_STAT, &ds), EINVAL);
	CHECK_ERRNO(shmctl(0, SHM_INFO, (struct shmid_ds *)8), EFAULT);
	shmdt(at);
	CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	CHECK_EQ(shmctl(other, IPC_RMID, NULL), 0);
	for (int place = 0; place <= highest; place++)
		CHECK(shmctl(place, SHM_STAT_ANY, &ds) != id);
}

static void sets(void)
{
	int id = semget(0x1e57, 5, IPC_CREAT | IPC_EXCL | 0640), found = 0;
	struct semid_ds ds;
	struct seminfo info = { 0 }, limits = { 0 };
	union semun to = { .info = &info }, buf = { .buf = &ds }, bad = { .info = (struct seminfo *)8 };

	NEED(id >= 0);
	int highest = semctl(0, 0, SEM_INFO, to);
	CHECK(highest >= 0);
	CHECK(info.semusz >= 1);
	CHECK(info.semaem >= 5);
	to.info = &limits;
	CHECK(semctl(0, 0, IPC_INFO, to) >= 0);
	CHECK_EQ(limits.semvmx, 32767);
	CHECK_EQ(limits.semopm, 500);
	CHECK_EQ(limits.semmsl, 32000);
	CHECK_EQ(limits.semaem, 32767);
	for (int place = 0; place <= highest; place++) {
		if (semctl(place, 0, SEM_STAT, buf) != id)
			continue;
		found++;
		CHECK_EQ(ds.sem_nsems, 5);
		CHECK_EQ(ds.sem_perm.mode & 0777, 0640);
		CHECK_EQ(semctl(place, 0, SEM_STAT_ANY, buf), id);
	}
	CHECK_EQ(found, 1);
	CHECK_ERRNO(semctl(-1, 0, SEM_STAT, buf), EINVAL);
	CHECK_ERRNO(semctl(0x7ffffff, 0, SEM_STAT, buf), EINVAL);
	CHECK_ERRNO(semctl(0, 0, SEM_INFO, bad), EFAULT);
	CHECK_EQ(semctl(id, 0, IPC_RMID), 0);
}

static void queues(void)
{
	struct {
		long kind;
		char text[4];
	} message = { 1, "abc" };
	int id = msgget(0x1e57, IPC_CREAT | IPC_EXCL | 0640), found = 0;
	struct msqid_ds ds;
	struct msginfo info = { 0 }, limits = { 0 };

	NEED(id >= 0);
	CHECK_EQ(msgsnd(id, &message, 3, 0), 0);
	int highest = msgctl(0, MSG_INFO, (struct msqid_ds *)&info);
	CHECK(highest >= 0);
	CHECK(info.msgpool >= 1);
	CHECK(info.msgmap >= 1);
	CHECK(info.msgtql >= 3);
	CHECK(msgctl(0, IPC_INFO, (struct msqid_ds *)&limits) >= 0);
	CHECK_EQ(limits.msgmax, 8192);
	CHECK_EQ(limits.msgmnb, 16384);
	CHECK_EQ(limits.msgssz, 16);
	CHECK_EQ(limits.msgseg, 0xffff);
	for (int place = 0; place <= highest; place++) {
		if (msgctl(place, MSG_STAT, &ds) != id)
			continue;
		found++;
		CHECK_EQ(ds.msg_qnum, 1);
		CHECK_EQ(ds.msg_perm.mode & 0777, 0640);
		CHECK_EQ(msgctl(place, MSG_STAT_ANY, &ds), id);
	}
	CHECK_EQ(found, 1);
	CHECK_ERRNO(msgctl(-1, MSG_STAT, &ds), EINVAL);
	CHECK_ERRNO(msgctl(0x7ffffff, MSG_STAT, &ds), EINVAL);
	CHECK_ERRNO(msgctl(0, MSG_INFO, (struct msqid_ds *)8), EFAULT);
	CHECK_EQ(msgctl(id, IPC_RMID, NULL), 0);
}

int main(void)
{
	segments();
	sets();
	queues();
	return check_done();
}
