/* /proc/sysvipc: the System V objects, as IPC_STAT tells of them. */
#include "check.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

static char text[1 << 18];

/* The numbers of an object's row; how many there are. */
static int row(const char *path, int id, unsigned long long *numbers, int room)
{
	int fd = open(path, O_RDONLY), count = 0;
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	char *line, *end, *at;

	NEED(got > 0);
	text[got] = 0;
	close(fd);
	for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		char *stop = strchr(line + 1, '\n');
		strtoll(line, &at, 10);
		if (strtol(at, &end, 10) != id)
			continue;
		numbers[count++] = strtoull(end, &at, 8);
		while (count < room && at < stop) {
			numbers[count] = strtoull(at, &end, 10);
			if (end == at || end > stop)
				break;
			at = end, count++;
		}
		return count;
	}
	return 0;
}

int main(void)
{
	unsigned long long n[20];
	int shm, sem, msg;
	struct {
		long type;
		char text[8];
	} letter = { 1, "1234567" };
	char *at;

	if (access("/proc/sysvipc/shm", R_OK))
		check_skip("no System V objects here");
	shm = shmget(IPC_PRIVATE, 5000, 0640);
	NEED(shm >= 0);
	CHECK_EQ(row("/proc/sysvipc/shm", shm, n, 20), 14);
	CHECK_EQ(n[0], 0640);
	CHECK_EQ(n[1], 5000);
	CHECK_EQ(n[2], getpid());
	CHECK_EQ(n[3], 0);
	CHECK_EQ(n[4], 0);
	CHECK_EQ(n[5], geteuid());
	CHECK_EQ(n[6], getegid());
	CHECK_EQ(n[9], 0);
	CHECK(n[11] > 1600000000);
	CHECK_EQ(n[12], 0);
	at = shmat(shm, NULL, 0);
	NEED(at != (void *)-1);
	*at = 1;
	CHECK_EQ(row("/proc/sysvipc/shm", shm, n, 20), 14);
	CHECK_EQ(n[3], getpid());
	CHECK_EQ(n[4], 1);
	CHECK(n[12] >= 4096);
	CHECK_EQ(shmctl(shm, IPC_RMID, NULL), 0);
	CHECK_EQ(row("/proc/sysvipc/shm", shm, n, 20), 14);
	CHECK_EQ(n[0], 01640);
	CHECK_EQ(shmdt(at), 0);
	CHECK_EQ(row("/proc/sysvipc/shm", shm, n, 20), 0);

	sem = semget(IPC_PRIVATE, 7, 0600);
	NEED(sem >= 0);
	CHECK_EQ(row("/proc/sysvipc/sem", sem, n, 20), 8);
	CHECK_EQ(n[0], 0600);
	CHECK_EQ(n[1], 7);
	CHECK_EQ(n[2], geteuid());
	CHECK_EQ(n[6], 0);
	CHECK_EQ(semctl(sem, 0, IPC_RMID), 0);
	CHECK_EQ(row("/proc/sysvipc/sem", sem, n, 20), 0);

	msg = msgget(IPC_PRIVATE, 0620);
	NEED(msg >= 0);
	CHECK_EQ(msgsnd(msg, &letter, 7, 0), 0);
	CHECK_EQ(row("/proc/sysvipc/msg", msg, n, 20), 12);
	CHECK_EQ(n[0], 0620);
	CHECK_EQ(n[1], 7);
	CHECK_EQ(n[2], 1);
	CHECK_EQ(n[3], getpid());
	CHECK_EQ(n[4], 0);
	CHECK(n[9] > 1600000000);
	CHECK_EQ(msgctl(msg, IPC_RMID, NULL), 0);
	CHECK_EQ(row("/proc/sysvipc/msg", msg, n, 20), 0);
	return check_done();
}
