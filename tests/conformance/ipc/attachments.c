/* shm_nattch: who has a segment, over fork, vfork, exec, threads, ends of all kinds, and when parts of it are unmapped. */
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
	/* What is not inherited is not had. */
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
	/* What a thread attaches is the process's. */
	NEED(pthread_create(&thread, NULL, attach_here, NULL) == 0 && pthread_join(thread, &a) == 0);
	CHECK_EQ(attached(), 1);
	CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	CHECK_EQ(attached(), 1);
	CHECK_EQ(shmdt(a), 0);
	CHECK_EQ(attached(), -1);
	return check_done();
}
