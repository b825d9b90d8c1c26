/* Many small mappings with different protections, checked against a plain array that says what
 * should be there. */
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>

#define PAGE  4096
#define PAGES 64
#define ANON  (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)

enum state { HOLE, READ, WRITE };

static enum state model[PAGES];
static unsigned char value[PAGES];
static unsigned seed = 12345;

static unsigned next(unsigned bound)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % bound;
}

/* Whether the model is right, by calls that fail instead of faults that kill. */
static int agrees(unsigned char *area, int fd)
{
	for (int i = 0; i < PAGES; i++) {
		unsigned char byte = 0;
		int readable = pwrite(fd, area + i * PAGE, 1, 0) == 1;

		if (readable != (model[i] != HOLE))
			return 0;
		if (readable && (pread(fd, &byte, 1, 0) != 1 || byte != value[i]))
			return 0;
		if ((pread(fd, area + i * PAGE, 1, 0) == 1) != (model[i] == WRITE))
			return 0;
	}
	return 1;
}

int main(void)
{
	unsigned char *area = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = check_file("f", "x");

	NEED(area != MAP_FAILED && munmap(area, PAGES * PAGE) == 0);
	for (int step = 0; step < 400; step++) {
		unsigned from = next(PAGES), count = 1 + next(PAGES - from), what = next(3);
		unsigned char *at = area + from * PAGE;
		int all = 1;

		for (unsigned i = from; i < from + count; i++)
			all &= model[i] != HOLE;
		if (what == 0) {
			NEED(munmap(at, count * PAGE) == 0);
			memset(value + from, 0, count);
		} else if (what == 1 || !all) {
			what = 2;
			NEED(mmap(at, count * PAGE, PROT_READ | PROT_WRITE, ANON, -1, 0) == at);
			for (unsigned i = from; i < from + count; i++)
				at[(i - from) * PAGE] = value[i] = (unsigned char)next(256);
		} else {
			what = 1;
			NEED(mprotect(at, count * PAGE, PROT_READ) == 0);
		}
		for (unsigned i = from; i < from + count; i++)
			model[i] = what == 0 ? HOLE : what == 1 ? READ : WRITE;
		if (!agrees(area, fd)) {
			printf("after step %d\n", step);
			NEED(!"the mappings are what the model says");
		}
	}
	CHECK_EQ(munmap(area, PAGES * PAGE), 0);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
