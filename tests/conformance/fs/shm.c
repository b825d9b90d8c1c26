/* shm_open: memory with a name, in /dev/shm. */
#include "check.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

int main(void)
{
	char name[64], *a, *b;
	struct stat st;
	int fd, other;

	if (access("/dev/shm", W_OK))
		check_skip("no /dev/shm here");
	snprintf(name, sizeof name, "/lind-test-%d-%ld", (int)getpid(), (long)time(NULL));
	CHECK_ERRNO(shm_open(name, O_RDWR, 0), ENOENT);
	NEED((fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600)) >= 0);
	CHECK_ERRNO(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(ftruncate(fd, 8192), 0);
	NEED((other = shm_open(name, O_RDWR, 0)) >= 0);
	NEED(fstat(other, &st) == 0);
	CHECK_EQ(st.st_size, 8192);
	a = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	b = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	NEED(a != MAP_FAILED && b != MAP_FAILED && a != b);
	strcpy(a + 4096, "seen");
	CHECK_STR(b + 4096, "seen");
	CHECK_EQ(shm_unlink(name), 0);
	CHECK_ERRNO(shm_unlink(name), ENOENT);
	CHECK_STR(b + 4096, "seen");
	CHECK_EQ(munmap(a, 8192), 0);
	CHECK_EQ(munmap(b, 8192), 0);
	return check_done();
}
