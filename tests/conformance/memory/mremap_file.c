/* mremap of a shared file mapping: it still is the file's. */
#include "check.h"

#include <sys/mman.h>

#define PAGE 4096

int main(void)
{
	int fd = check_file("f", "");
	volatile char *p, *q;
	char byte = 0;

	NEED(ftruncate(fd, 4 * PAGE) == 0 && pwrite(fd, "4", 1, 3 * PAGE) == 1);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(p != MAP_FAILED);
	p[0] = '1';
	q = mremap((void *)p, PAGE, 4 * PAGE, MREMAP_MAYMOVE);
	NEED(q != MAP_FAILED);
	CHECK_EQ(q[0], '1');
	CHECK_EQ(q[3 * PAGE], '4');
	q[PAGE] = '2';
	CHECK_EQ(pread(fd, &byte, 1, PAGE), 1);
	CHECK_EQ(byte, '2');
	CHECK_EQ(munmap((void *)q, 4 * PAGE), 0);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
