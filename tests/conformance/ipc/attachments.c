/* shm_nattch: the number of attachments, over fork, vfork, exec, threads, ends of all kinds, and
 * when parts of a segment are unmapped, protected or moved. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

#define SIZE (16 * 4096)

static int id;

static int attached(void)
{
	struct shmid_ds ds;

	return shmctl(id, IPC_STAT, &ds) ? -1 : (int)ds.shm_nattch;
}

static char *attach(void)
{
	char *p = shmat(id, NULL, 0);

	NEED(p != (char *)-1);
	return p;
}

static int ended(pid_t child)
{
	int status = -1;

	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void check_children(char *a)
{
	pid_t child;

	NEED((child = fork()) >= 0);
	if (!child) {
		int at_first = attached();

		shmdt(a);
		_exit(at_first * 16 + attached());
	}
	CHECK_EQ(ended(child), 0x21 << 8);
	CHECK_EQ(attached(), 1);
	NEED((child = fork()) >= 0);
	if (!child) {
		shmat(id, NULL, 0);
		_exit(attached());
	}
	CHECK_EQ(ended(child), 3 << 8);
	CHECK_EQ(attached(), 1);
	NEED((child = fork()) >= 0);
	if (!child)
		raise(SIGKILL);
	CHECK_EQ(ended(child), SIGKILL);
	CHECK_EQ(attached(), 1);
	NEED((child = vfork()) >= 0);
	if (!child)
		_exit(0);
	CHECK_EQ(ended(child), 0);
	CHECK_EQ(attached(), 1);
	NEED((child = fork()) >= 0);
	if (!child) {
		execl("/proc/self/exe", "attachments", "7", NULL);
		_exit(1);
	}
	CHECK_EQ(ended(child), 7 << 8);
	CHECK_EQ(attached(), 1);
	/* A mapping that is not inherited does not count as an attachment. */
	CHECK_EQ(madvise(a, SIZE, MADV_DONTFORK), 0);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(attached());
	CHECK_EQ(ended(child), 1 << 8);
	CHECK_EQ(madvise(a, SIZE, MADV_DOFORK), 0);
}

static void check_parts(char *a)
{
	pid_t child;

	/* Two pieces count as two. */
	CHECK_EQ(munmap(a + 4096, 4096), 0);
	CHECK_EQ(attached(), 2);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(attached());
	CHECK_EQ(ended(child), 4 << 8);
	CHECK_EQ(attached(), 2);
	CHECK_EQ(shmdt(a), 0);
	CHECK_EQ(attached(), 0);
	a = attach();
	CHECK_EQ(munmap(a, SIZE), 0);
	CHECK_EQ(attached(), 0);
	a = attach();
	CHECK(mmap(a, SIZE, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == a);
	CHECK_EQ(attached(), 0);
	CHECK_ERRNO(shmdt(a), EINVAL);
	CHECK_EQ(munmap(a, SIZE), 0);
}

/* An attachment that has once been split into several mappings stays so. */
static void check_protected(void)
{
	char *a = attach(), *moved, *hole;

	CHECK_EQ(mprotect(a + 2 * 4096, 4096, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(attached(), 1);
	CHECK_EQ(mprotect(a + 2 * 4096, 4096, PROT_READ), 0);
	CHECK_EQ(attached(), 3);
	CHECK_EQ(mprotect(a + 2 * 4096, 4096, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(attached(), 3);
	CHECK_EQ(munmap(a + 5 * 4096, 4096), 0);
	CHECK_EQ(attached(), 4);
	CHECK_EQ(munmap(a + 15 * 4096, 4096), 0);
	CHECK_EQ(attached(), 4);
	CHECK_EQ(mlock(a + 8 * 4096, 4096), 0);
	CHECK_EQ(attached(), 6);
	CHECK_EQ(munmap(a, 4096), 0);
	hole = mmap(a + 5 * 4096, 4096, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole == a + 5 * 4096);
	/* All of it goes, also without its first page, and what lies in between stays. */
	CHECK_EQ(shmdt(a), 0);
	CHECK_EQ(attached(), 0);
	CHECK_EQ(munmap(hole, 4096), 0);
	CHECK_ERRNO(shmdt(a), EINVAL);

	a = attach();
	NEED((moved = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	CHECK(mremap(a, 4 * 4096, 4 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved);
	CHECK_EQ(attached(), 2);
	CHECK_EQ(shmdt(moved), 0);
	CHECK_EQ(attached(), 1);
	CHECK_EQ(shmdt(a), 0);
	CHECK_EQ(attached(), 0);
	CHECK_EQ(munmap(moved + 4 * 4096, SIZE - 4 * 4096), 0);
}

static void *attach_here(void *unused)
{
	(void)unused;
	return attach();
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *a;

	if (argc > 1)
		return atoi(argv[1]);
	if ((id = shmget(IPC_PRIVATE, SIZE, 0600)) < 0 && errno == ENOSYS)
		check_skip("no System V shared memory here");
	NEED(id >= 0);
	CHECK_EQ(attached(), 0);
	a = attach();
	CHECK_EQ(attached(), 1);
	check_children(a);
	check_parts(a);
	check_protected();
	/* A segment that a thread attaches is attached for the process. */
	NEED(pthread_create(&thread, NULL, attach_here, NULL) == 0 && pthread_join(thread, &a) == 0);
	CHECK_EQ(attached(), 1);
	CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	CHECK_EQ(attached(), 1);
	CHECK_EQ(shmdt(a), 0);
	CHECK_EQ(attached(), -1);
	return check_done();
}
