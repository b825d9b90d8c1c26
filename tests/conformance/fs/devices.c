/* /dev/null, /dev/zero and /dev/full, where the root has them. */
#include "check.h"

#include <sys/mman.h>
#include <sys/stat.h>

int main(void)
{
	char text[8] = "1234567";
	struct stat st;
	int fd;

	if (access("/dev/null", F_OK) || access("/dev/zero", F_OK))
		check_skip("no /dev/null or /dev/zero here");
	NEED((fd = open("/dev/null", O_RDWR)) >= 0);
	NEED(fstat(fd, &st) == 0);
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(write(fd, text, 8), 8);
	CHECK_EQ(read(fd, text, 8), 0);
	close(fd);
	NEED((fd = open("/dev/zero", O_RDONLY)) >= 0);
	CHECK_EQ(read(fd, text, 7), 7);
	CHECK_EQ(memcmp(text, "\0\0\0\0\0\0\0", 7), 0);
	close(fd);
	if ((fd = open("/dev/full", O_WRONLY)) >= 0) {
		CHECK_ERRNO(write(fd, text, 1), ENOSPC);
		close(fd);
	}
	return check_done();
}
