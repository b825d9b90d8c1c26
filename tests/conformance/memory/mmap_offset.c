/* Mapping a file beyond 4 GiB of it. */
#include "check.h"

#include <sys/mman.h>

int main(void)
{
	int fd = check_file("f", "");
	volatile char *p;

	NEED(pwrite(fd, "far away", 8, 0x200001000) == 8);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0x200001000);
	NEED(p != MAP_FAILED);
	CHECK_EQ(p[0], 'f');
	CHECK_EQ(p[7], 'y');
	p[1] = 'o';
	CHECK_EQ(pread(fd, (char[2]){ 0 }, 2, 0x200001000), 2);
	CHECK_EQ(munmap((void *)p, 4096), 0);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
