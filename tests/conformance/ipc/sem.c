/* System V semaphores: semget, semop, semtimedop, semctl, SEM_UNDO. */
#include "check.h"

#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
};

static int op(int id, int index, int change, int flags)
{
	struct sembuf one = { (unsigned short)index, (short)change, (short)flags };

	return semop(id, &one, 1);
}

static void note(int number)
{
	(void)number;
}

/* Until somebody waits. */
static void until(int id, int index, int cmd)
{
	for (int i = 0; i < 2000 && semctl(id, index, cmd) == 0; i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	CHECK_EQ(semctl(id, index, cmd), 1);
}

static void check_values(int id)
{
	unsigned short all[3] = { 1, 2, 3 }, read[3] = { 0 };
	struct sembuf two[2] = { { 0, -1, 0 }, { 1, -3, IPC_NOWAIT } };
	struct semid_ds ds;

	CHECK_EQ(semctl(id, 0, SETALL, (union semun){ .array = all }), 0);
	CHECK_EQ(semctl(id, 0, GETALL, (union semun){ .array = read }), 0);
	CHECK_EQ(memcmp(all, read, sizeof all), 0);
	CHECK_EQ(semctl(id, 1, GETVAL), 2);
	CHECK_EQ(semctl(id, 1, SETVAL, (union semun){ .val = 7 }), 0);
	CHECK_EQ(semctl(id, 1, GETVAL), 7);
	CHECK_EQ(semctl(id, 1, GETPID), getpid());
	CHECK_ERRNO(semctl(id, 3, GETVAL), EINVAL);
	CHECK_ERRNO(semctl(id, -1, GETVAL), EINVAL);
	CHECK_ERRNO(semctl(id, 0, SETVAL, (union semun){ .val = 32768 }), ERANGE);
	CHECK_ERRNO(semctl(id, 0, SETVAL, (union semun){ .val = -1 }), ERANGE);
	CHECK_EQ(semctl(id, 1, SETVAL, (union semun){ .val = 2 }), 0);
	/* Many programs have no union for a number. */
	CHECK_EQ(semctl(id, 1, SETVAL, 3), 0);
	CHECK_EQ(semctl(id, 1, GETVAL), 3);
	CHECK_ERRNO(semctl(id, 1, SETVAL, 32768), ERANGE);
	CHECK_ERRNO(semctl(id, 1, SETVAL, -1), ERANGE);
	CHECK_EQ(semctl(id, 1, SETVAL, 2), 0);
	/* All or nothing. */
	CHECK_ERRNO(semop(id, two, 2), EAGAIN);
	CHECK_EQ(semctl(id, 0, GETVAL), 1);
	two[1].sem_op = -2;
	CHECK_EQ(semop(id, two, 2), 0);
	CHECK_EQ(semctl(id, 0, GETVAL), 0);
	CHECK_EQ(semctl(id, 1, GETVAL), 0);
	CHECK_EQ(op(id, 0, 0, IPC_NOWAIT), 0);
	CHECK_ERRNO(op(id, 2, 0, IPC_NOWAIT), EAGAIN);
	CHECK_ERRNO(op(id, 3, 1, 0), EFBIG);
	CHECK_ERRNO(op(id, 0, 32767, 0) || op(id, 0, 1, 0) ? -1 : 0, ERANGE);
	CHECK_ERRNO(semop(id, two, 0), EINVAL);
	CHECK_ERRNO(semop(id, two, 100000), E2BIG);
	CHECK_ERRNO(op(-1, 0, 1, 0), EINVAL);
	CHECK_EQ(semctl(id, 0, SETVAL, (union semun){ .val = 0 }), 0);
	NEED(semctl(id, 0, IPC_STAT, (union semun){ .buf = &ds }) == 0);
	CHECK_EQ(ds.sem_nsems, 3);
	CHECK(ds.sem_otime > 0 && ds.sem_ctime > 0);
	CHECK_EQ(ds.sem_perm.mode & 0777, 0600);
}

static void check_waits(int id)
{
	struct sembuf take = { 0, -1, 0 };
	struct timespec short_time = { 0, 20000000 };
	pid_t child;
	int status;

	CHECK_ERRNO(semtimedop(id, &take, 1, &short_time), EAGAIN);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(op(id, 0, -2, 0) ? 1 : 0);
	until(id, 0, GETNCNT);
	CHECK_EQ(op(id, 0, 1, 0), 0);
	CHECK_EQ(op(id, 0, 1, 0), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(semctl(id, 0, GETVAL), 0);
	CHECK_EQ(semctl(id, 0, GETPID), child);
	CHECK_EQ(semctl(id, 0, GETNCNT), 0);

	CHECK_EQ(op(id, 0, 1, 0), 0);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(op(id, 0, 0, 0) ? 1 : 0);
	until(id, 0, GETZCNT);
	CHECK_EQ(op(id, 0, -1, 0), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);

	/* A handler ends the wait, SA_RESTART or not. */
	NEED((child = fork()) >= 0);
	if (!child) {
		struct sigaction act = { 0 };

		act.sa_handler = note;
		act.sa_flags = SA_RESTART;
		sigaction(SIGUSR1, &act, NULL);
		_exit(op(id, 0, -1, 0) == -1 && errno == EINTR ? 0 : 1);
	}
	until(id, 0, GETNCNT);
	CHECK_EQ(kill(child, SIGUSR1), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(semctl(id, 0, GETNCNT), 0);
}

static void check_undo(int id)
{
	pid_t child;
	int status, p[2];
	char byte;

	NEED(pipe(p) == 0);
	CHECK_EQ(semctl(id, 2, SETVAL, (union semun){ .val = 5 }), 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		op(id, 2, -3, SEM_UNDO);
		op(id, 2, 1, SEM_UNDO);
		op(id, 2, 2, 0);
		write(p[1], "x", 1);
		raise(SIGKILL);
	}
	CHECK_EQ(read(p[0], &byte, 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(semctl(id, 2, GETVAL), 7);
	CHECK_EQ(op(id, 2, -1, SEM_UNDO), 0);
	/* fork does not hand it on. */
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(semctl(id, 2, GETVAL), 6);
}

static void check_removal(int id)
{
	pid_t child;
	int status;

	CHECK_EQ(semctl(id, 0, SETVAL, (union semun){ .val = 0 }), 0);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(op(id, 0, -1, 0) == -1 && errno == EIDRM ? 0 : 1);
	until(id, 0, GETNCNT);
	CHECK_EQ(semctl(id, 0, IPC_RMID), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_ERRNO(semctl(id, 0, GETVAL), EINVAL);
}

int main(void)
{
	key_t key = (key_t)(0x4d000000 | (getpid() & 0xffffff));
	int id;

	CHECK_ERRNO(semget(key, 1, 0600), ENOENT);
	CHECK_ERRNO(semget(key, 0, IPC_CREAT | 0600), EINVAL);
	CHECK_ERRNO(semget(key, -1, IPC_CREAT | 0600), EINVAL);
	if ((id = semget(key, 3, IPC_CREAT | IPC_EXCL | 0600)) < 0 && errno == ENOSYS)
		check_skip("no System V semaphores here");
	NEED(id >= 0);
	CHECK_EQ(semget(key, 0, 0), id);
	CHECK_ERRNO(semget(key, 4, 0), EINVAL);
	CHECK_ERRNO(semget(key, 3, IPC_CREAT | IPC_EXCL | 0600), EEXIST);
	check_values(id);
	check_waits(id);
	check_undo(id);
	check_removal(id);
	return check_done();
}
