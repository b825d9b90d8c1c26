/* sem_open: semaphores with names, which are files of /dev/shm. */
#include "check.h"

#include <dirent.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>

int main(void)
{
	char name[64], path[96];
	struct stat st;
	sem_t *one, *same;
	int value = -1;

	if (access("/dev/shm", W_OK))
		check_skip("no /dev/shm here");
	snprintf(name, sizeof name, "/lind-sem-%d-%ld", (int)getpid(), (long)time(NULL));
	CHECK(sem_open(name, 0) == SEM_FAILED && errno == ENOENT);
	NEED((one = sem_open(name, O_CREAT | O_EXCL, 0600, 3)) != SEM_FAILED);
	CHECK(sem_open(name, O_CREAT | O_EXCL, 0600, 3) == SEM_FAILED && errno == EEXIST);
	NEED((same = sem_open(name, 0)) != SEM_FAILED);
	CHECK_EQ(sem_wait(one), 0);
	CHECK_EQ(sem_getvalue(same, &value), 0);
	CHECK_EQ(value, 2);
	CHECK_EQ(sem_trywait(same), 0);
	CHECK_EQ(sem_trywait(same), 0);
	CHECK_ERRNO(sem_trywait(one), EAGAIN);
	CHECK_EQ(sem_post(same), 0);
	CHECK_EQ(sem_wait(one), 0);
	snprintf(path, sizeof path, "/dev/shm/sem.%s", name + 1);
	if (!stat(path, &st))
		CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(sem_close(same), 0);
	CHECK_EQ(sem_unlink(name), 0);
	CHECK_ERRNO(sem_unlink(name), ENOENT);
	CHECK_EQ(sem_close(one), 0);
	return check_done();
}
