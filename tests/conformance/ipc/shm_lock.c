/* shmctl(SHM_LOCK, SHM_UNLOCK): the mode shows the lock, RLIMIT_MEMLOCK is the limit, and only the
 * owner may. */
#include "check.h"

#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>

#ifndef SHM_LOCKED
#define SHM_LOCKED 02000
#endif

static int is_locked(int id)
{
	struct shmid_ds ds;

	return shmctl(id, IPC_STAT, &ds) ? -1 : !!(ds.shm_perm.mode & SHM_LOCKED);
}

static int segment(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, 0600);

	NEED(id >= 0);
	return id;
}

/* Somebody else than root has a limit. */
static int check_limits(int other)
{
	struct rlimit limit = { 3 * 4096, 3 * 4096 };
	int large = segment(4 * 4096), two = segment(2 * 4096), three = segment(3 * 4096);

	CHECK_ERRNO(shmctl(other, SHM_LOCK, NULL), EPERM);
	CHECK_ERRNO(shmctl(other, SHM_UNLOCK, NULL), EPERM);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	CHECK_ERRNO(shmctl(large, SHM_LOCK, NULL), ENOMEM);
	CHECK_EQ(is_locked(large), 0);
	CHECK_EQ(shmctl(two, SHM_LOCK, NULL), 0);
	CHECK_EQ(shmctl(two, SHM_LOCK, NULL), 0);
	CHECK_EQ(is_locked(two), 1);
	CHECK_ERRNO(shmctl(three, SHM_LOCK, NULL), ENOMEM);
	CHECK_EQ(shmctl(two, SHM_UNLOCK, NULL), 0);
	CHECK_EQ(shmctl(three, SHM_LOCK, NULL), 0);
	/* With its end it is unlocked. */
	CHECK_EQ(shmctl(three, IPC_RMID, NULL), 0);
	CHECK_EQ(shmctl(two, SHM_LOCK, NULL), 0);
	limit.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	CHECK_ERRNO(shmctl(large, SHM_LOCK, NULL), EPERM);
	CHECK_EQ(shmctl(two, SHM_UNLOCK, NULL), 0);
	CHECK_EQ(is_locked(two), 0);
	CHECK_EQ(shmctl(large, IPC_RMID, NULL), 0);
	CHECK_EQ(shmctl(two, IPC_RMID, NULL), 0);
	return check_done();
}

int main(void)
{
	int id, status;
	pid_t child;
	char *a;

	if ((id = shmget(IPC_PRIVATE, 3 * 4096, 0600)) < 0 && errno == ENOSYS)
		check_skip("no System V shared memory here");
	NEED((a = shmat(id, NULL, 0)) != (char *)-1);
	strcpy(a, "kept");
	CHECK_EQ(is_locked(id), 0);
	CHECK_EQ(shmctl(id, SHM_LOCK, NULL), 0);
	CHECK_EQ(is_locked(id), 1);
	CHECK_STR(a, "kept");
	CHECK_EQ(shmctl(id, SHM_UNLOCK, NULL), 0);
	CHECK_EQ(is_locked(id), 0);
	CHECK_EQ(shmctl(id, SHM_UNLOCK, NULL), 0);
	CHECK_ERRNO(shmctl(-1, SHM_LOCK, NULL), EINVAL);
	if (geteuid() == 0) {
		NEED((child = fork()) >= 0);
		if (!child)
			_exit(setresuid(65534, 65534, 65534) ? 7 : check_limits(id));
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(shmdt(a), 0);
	CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	return check_done();
}
