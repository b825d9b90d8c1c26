/* Tests that a waiter for a queue or a set that is removed gets EIDRM, whatever it waits for, and
 * however many there are. */
#include "check.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>

#define WAITERS 6

union semun {
	int val;
};

static struct {
	long kind;
	char text[1024];
} message = { 1, { 0 } };

static int id;

static int send_one(void)
{
	return msgsnd(id, &message, sizeof message.text, 0);
}

static int receive_another(void)
{
	return (int)msgrcv(id, &message, sizeof message.text, 77, 0);
}

static int take(void)
{
	return semop(id, &(struct sembuf){ 0, -1, 0 }, 1);
}

static int take_second(void)
{
	/* The first holds, so that it is the second that is waited for. */
	struct sembuf both[] = { { 0, 0, 0 }, { 1, -1, 0 } };

	return semop(id, both, 2);
}

static int until_zero(void)
{
	return semop(id, &(struct sembuf){ 2, 0, SEM_UNDO }, 1);
}

static int until_zero_for_long(void)
{
	return semtimedop(id, &(struct sembuf){ 2, 0, 0 }, 1, &(struct timespec){ 1000, 0 });
}

static pid_t children[WAITERS];

static void start(int (*const calls[])(void))
{
	for (int i = 0; i < WAITERS; i++) {
		NEED((children[i] = fork()) >= 0);
		if (!children[i])
			_exit(calls[i % 4]() == -1 ? errno : 0);
	}
}

static void check_ends(void)
{
	int status;

	for (int i = 0; i < WAITERS; i++) {
		CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
		CHECK_EQ(status, EIDRM << 8);
	}
}

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* Waits until the number that each process waits for is reported: of several operations, the one
 * that does not hold. */
static void until_all_wait(int first, int second, int zero)
{
	for (int i = 0; i < 5000; i++, nap())
		if (semctl(id, 0, GETNCNT) == first && semctl(id, 1, GETNCNT) == second &&
		    semctl(id, 2, GETZCNT) == zero)
			break;
	CHECK_EQ(semctl(id, 0, GETNCNT), first);
	CHECK_EQ(semctl(id, 1, GETNCNT), second);
	CHECK_EQ(semctl(id, 2, GETZCNT), zero);
	CHECK_EQ(semctl(id, 0, GETZCNT), 0);
	CHECK_EQ(semctl(id, 2, GETNCNT), 0);
}

int main(void)
{
	int (*const of_sets[])(void) = { take, take_second, until_zero, until_zero_for_long };
	int (*const of_queues[])(void) = { send_one, receive_another, send_one, receive_another };

	if ((id = semget(IPC_PRIVATE, 3, 0600)) < 0 && errno == ENOSYS)
		check_skip("no System V semaphores here");
	NEED(id >= 0 && semctl(id, 2, SETVAL, (union semun){ .val = 1 }) == 0);
	start(of_sets);
	until_all_wait(2, 2, 2);
	CHECK_EQ(semctl(id, 0, IPC_RMID), 0);
	check_ends();
	CHECK_ERRNO(semctl(id, 0, IPC_RMID), EINVAL);
	CHECK_ERRNO(take(), EINVAL);

	NEED((id = msgget(IPC_PRIVATE, 0600)) >= 0);
	while (msgsnd(id, &message, sizeof message.text, IPC_NOWAIT) == 0)
		;
	CHECK_EQ(errno, EAGAIN);
	start(of_queues);
	/* Nothing shows that somebody waits for a queue. A waiter that comes too late gets the error that
	 * it does not exist. */
	for (int i = 0; i < 300; i++)
		nap();
	CHECK_EQ(msgctl(id, IPC_RMID, NULL), 0);
	for (int i = 0; i < WAITERS; i++) {
		int status;

		CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
		CHECK(status == EIDRM << 8 || status == EINVAL << 8);
	}
	CHECK_ERRNO(send_one(), EINVAL);
	CHECK_ERRNO(receive_another(), EINVAL);
	return check_done();
}
