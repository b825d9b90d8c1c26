/* System V shared memory: shmget, shmat, shmdt, shmctl. */
#include "check.h"

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

int main(void)
{
	key_t key = (key_t)(0x4c000000 | (getpid() & 0xffffff));
	struct shmid_ds ds;
	char *a, *b, *fixed;
	int id, other, status;
	pid_t child;

	CHECK_ERRNO(shmget(key, 4096, 0600), ENOENT);
	CHECK_ERRNO(shmget(key, 0, IPC_CREAT | 0600), EINVAL);
	if ((id = shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0640)) < 0 && errno == ENOSYS)
		check_skip("no System V shared memory here");
	NEED(id >= 0);
	CHECK_EQ(shmget(key, 0, 0), id);
	CHECK_EQ(shmget(key, 5000, IPC_CREAT | 0600), id);
	CHECK_ERRNO(shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0600), EEXIST);
	CHECK_ERRNO(shmget(key, 5001, 0600), EINVAL);
	NEED(shmctl(id, IPC_STAT, &ds) == 0);
	CHECK_EQ(ds.shm_segsz, 5000);
	CHECK_EQ(ds.shm_nattch, 0);
	CHECK_EQ(ds.shm_cpid, getpid());
	CHECK_EQ(ds.shm_lpid, 0);
	CHECK_EQ(ds.shm_perm.mode & 0777, 0640);
	CHECK_EQ(ds.shm_perm.uid, geteuid());
	CHECK_EQ(ds.shm_perm.cgid, getegid());
	CHECK_EQ(ds.shm_perm.__key, key);

	NEED((a = shmat(id, NULL, 0)) != (char *)-1 && (b = shmat(id, NULL, SHM_RDONLY)) != (char *)-1);
	CHECK(a != b);
	CHECK_EQ(a[0] | a[4999], 0);
	strcpy(a + 4990, "seen");
	CHECK_STR(b + 4990, "seen");
	NEED(shmctl(id, IPC_STAT, &ds) == 0);
	CHECK_EQ(ds.shm_nattch, 2);
	CHECK_EQ(ds.shm_lpid, getpid());
	CHECK_ERRNO(shmdt(a + 1), EINVAL);
	CHECK_ERRNO(shmdt(a + 4096), EINVAL);
	CHECK_EQ(shmdt(b), 0);
	CHECK_ERRNO(shmdt(b), EINVAL);
	CHECK_ERRNO((void *)shmat(id, a + 1, 0), EINVAL);
	CHECK_ERRNO((void *)shmat(id, a, 0), EINVAL);
	CHECK_ERRNO((void *)shmat(-1, NULL, 0), EINVAL);
	NEED((fixed = mmap(NULL, 8 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	CHECK_EQ(munmap(fixed, 8 << 20), 0);
	CHECK(shmat(id, fixed + 100, SHM_RND) == fixed);
	CHECK_STR(fixed + 4990, "seen");
	CHECK_EQ(mprotect(fixed, 4096, PROT_READ), 0);
	CHECK_EQ(shmdt(fixed), 0);
	CHECK_ERRNO(mprotect(fixed + 4096, 4096, PROT_READ), ENOMEM);

	NEED((child = fork()) >= 0);
	if (!child) {
		strcpy(a, "from the child");
		shmctl(id, IPC_STAT, &ds);
		_exit(ds.shm_nattch == 2 ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_STR(a, "from the child");
	NEED(shmctl(id, IPC_STAT, &ds) == 0);
	CHECK_EQ(ds.shm_nattch, 1);

	ds.shm_perm.mode = 0600;
	CHECK_EQ(shmctl(id, IPC_SET, &ds), 0);
	NEED(shmctl(id, IPC_STAT, &ds) == 0);
	CHECK_EQ(ds.shm_perm.mode & 0777, 0600);
	CHECK_ERRNO(shmctl(id, 999, &ds), EINVAL);

	/* Removed, it lasts as long as somebody has it attached. */
	CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	CHECK_ERRNO(shmget(key, 0, 0), ENOENT);
	CHECK_STR(a, "from the child");
	NEED(shmctl(id, IPC_STAT, &ds) == 0);
	CHECK(ds.shm_perm.mode & SHM_DEST);
	CHECK_EQ(shmdt(a), 0);
	CHECK_ERRNO(shmctl(id, IPC_STAT, &ds), EINVAL);
	CHECK_ERRNO((void *)shmat(id, NULL, 0), EINVAL);

	NEED((id = shmget(IPC_PRIVATE, 4096, 0600)) >= 0 && (other = shmget(IPC_PRIVATE, 4096, 0600)) >= 0);
	CHECK(id != other);
	CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	CHECK_EQ(shmctl(other, IPC_RMID, NULL), 0);
	CHECK_ERRNO(shmctl(other, IPC_RMID, NULL), EINVAL);
	return check_done();
}
