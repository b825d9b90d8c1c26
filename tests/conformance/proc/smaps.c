/* /proc/self/smaps and smaps_rollup: what is resident of a mapping. */
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

#define SIZE ((size_t)1 << 20)

static char *start;

/* The number of a field of the mapping that begins at `start`, or of the whole file if that is
 * NULL. */
static long field(const char *path, const char *begin, const char *name)
{
	FILE *file = fopen(path, "r");
	char line[512];
	long found = -1;
	int inside = !begin;

	if (!file)
		return -2;
	while (fgets(line, sizeof line, file)) {
		unsigned long from, to;
		char flags[8];

		if (sscanf(line, "%lx-%lx %7s", &from, &to, flags) == 3)
			inside = !begin || from == (unsigned long)begin;
		else if (inside && !strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			found = strtol(line + strlen(name) + 1, NULL, 10);
	}
	fclose(file);
	return found;
}

static long of(const char *name)
{
	return field("/proc/self/smaps", start, name);
}

int main(void)
{
	char *room = mmap(NULL, 3 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(room != MAP_FAILED);
	start = room + SIZE;
	/* Nothing beside it has its protection: it is one mapping. */
	CHECK_EQ(mprotect(start, SIZE, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(of("Size"), 1024);
	CHECK_EQ(of("KernelPageSize"), 4);
	CHECK_EQ(of("Rss"), 0);
	memset(start, 1, SIZE / 2);
	CHECK_EQ(of("Rss"), 512);
	CHECK_EQ(of("Pss"), 512);
	CHECK_EQ(of("Private_Dirty"), 512);
	CHECK_EQ(of("Shared_Dirty"), 0);
	CHECK_EQ(of("Anonymous"), 512);
	CHECK_EQ(of("Swap"), 0);
	long before = field("/proc/self/smaps_rollup", NULL, "Rss");

	CHECK(before >= 512);
	CHECK_EQ(madvise(start, SIZE / 4, MADV_DONTNEED), 0);
	CHECK_EQ(of("Rss"), 256);
	CHECK_EQ(munmap(room, 3 * SIZE), 0);
	CHECK(field("/proc/self/smaps_rollup", NULL, "Rss") < before);
	CHECK_EQ(of("Size"), -1);
	return check_done();
}
