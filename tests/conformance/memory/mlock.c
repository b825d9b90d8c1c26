/* Locked memory: up to RLIMIT_MEMLOCK, and what else it changes. */
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PAGE = 4096 };

static char *map(size_t pages, int flags)
{
	return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void limit_to(size_t pages)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	limit.rlim_cur = pages * PAGE;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

/* The locked pages by /proc. */
static long locked(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	NEED(status);
	while (fgets(line, sizeof line, status))
		if (sscanf(line, "VmLck: %ld kB", &kib) == 1)
			break;
	fclose(status);
	return kib / 4;
}

static void ranges(void)
{
	char *at = map(8, 0);

	NEED(at != MAP_FAILED);
	CHECK_EQ(mlock(at, PAGE), 0);
	CHECK_EQ(locked(), 1);
	CHECK_EQ(mlock(at + PAGE + 100, 10), 0);
	CHECK_EQ(locked(), 2);
	CHECK_EQ(mlock(at + 2 * PAGE - 1, 2), 0);
	CHECK_EQ(locked(), 3);
	CHECK_EQ(mlock(at, 3 * PAGE), 0);
	CHECK_EQ(locked(), 3);
	CHECK_EQ(munlock(at + PAGE, PAGE), 0);
	CHECK_EQ(locked(), 2);
	CHECK_EQ(munlock(at, 8 * PAGE), 0);
	CHECK_EQ(locked(), 0);
	CHECK_EQ(mlock(at, 0), 0);
	CHECK_EQ(munlock(at, 0), 0);
	CHECK_EQ(locked(), 0);

	/* As far as to the hole. */
	CHECK_EQ(munmap(at + 4 * PAGE, PAGE), 0);
	CHECK_ERRNO(mlock(at + 3 * PAGE, 3 * PAGE), ENOMEM);
	CHECK_EQ(locked(), 1);
	CHECK_ERRNO(munlock(at + 3 * PAGE, 3 * PAGE), ENOMEM);
	CHECK_EQ(locked(), 0);
	/* Nothing can be brought in here. */
	CHECK_EQ(mprotect(at, PAGE, PROT_NONE), 0);
	CHECK_ERRNO(mlock(at, PAGE), ENOMEM);
	CHECK_EQ(munmap(at, 8 * PAGE), 0);
	CHECK_EQ(locked(), 0);
}

static void on_fault(void)
{
	char *at = map(4, 0);
	unsigned char resident[4];

	CHECK_ERRNO(syscall(SYS_mlock2, at, (long)PAGE, 2L), EINVAL);
	CHECK_EQ(syscall(SYS_mlock2, at, 4L * PAGE, 1L), 0);
	CHECK_EQ(locked(), 4);
	CHECK_EQ(mincore(at, 4 * PAGE, resident), 0);
	CHECK_EQ(resident[1] & 1, 0);
	CHECK_EQ(mlock(at, 4 * PAGE), 0);
	CHECK_EQ(mincore(at, 4 * PAGE, resident), 0);
	CHECK_EQ(resident[1] & 1, 1);
	CHECK_EQ(munmap(at, 4 * PAGE), 0);
}

/* The effects of other calls on locked pages. */
static void others(void)
{
	char *at = map(4, 0), *moved;
	int status;
	pid_t child;

	CHECK_EQ(mlock(at, 2 * PAGE), 0);
	strcpy(at, "secret");
	CHECK_ERRNO(madvise(at, PAGE, MADV_DONTNEED), EINVAL);
	CHECK_STR(at, "secret");
	CHECK_EQ(mprotect(at, PAGE, PROT_READ), 0);
	CHECK_EQ(locked(), 2);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(locked() != 0 || strcmp(at, "secret") || mlock(at, PAGE) || locked() != 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(locked(), 2);
	CHECK_EQ(mprotect(at, PAGE, PROT_READ | PROT_WRITE), 0);

	/* It stays locked where it goes, as does what is added. */
	CHECK_EQ(munmap(at + 2 * PAGE, 2 * PAGE), 0);
	moved = mremap(at, 2 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
	NEED(moved != MAP_FAILED);
	CHECK_STR(moved, "secret");
	CHECK_EQ(locked(), 5);
	limit_to(6);
	CHECK_ERRNO(mremap(moved, 5 * PAGE, 7 * PAGE, MREMAP_MAYMOVE), EAGAIN);
	CHECK_EQ(locked(), 5);
	CHECK_EQ(munmap(moved, 7 * PAGE), 0);
	CHECK_EQ(locked(), 0);
}

static void limits(void)
{
	char *at = map(16, 0);

	limit_to(4);
	CHECK_EQ(mlock(at, 4 * PAGE), 0);
	CHECK_ERRNO(mlock(at + 8 * PAGE, 1), ENOMEM);
	CHECK_ERRNO(mlock(at, 5 * PAGE), ENOMEM);
	CHECK_EQ(mlock(at, 4 * PAGE), 0);
	CHECK_ERRNO(map(1, MAP_LOCKED), EAGAIN);
	CHECK_EQ(munlock(at, PAGE), 0);
	CHECK_EQ(mlock(at + 8 * PAGE, 1), 0);
	CHECK_EQ(munmap(at, 16 * PAGE), 0);
	at = map(4, MAP_LOCKED);
	CHECK(at != MAP_FAILED);
	CHECK_EQ(locked(), 4);
	/* A new mapping in its place is not locked. */
	CHECK(mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	CHECK_EQ(locked(), 3);
	CHECK_EQ(munlockall(), 0);
	CHECK_EQ(locked(), 0);
	CHECK_EQ(munmap(at, 4 * PAGE), 0);

	/* A program has more than that. */
	CHECK_ERRNO(mlockall(MCL_CURRENT), ENOMEM);
	CHECK_EQ(mlockall(MCL_FUTURE), 0);
	at = map(3, 0);
	NEED(at != MAP_FAILED);
	CHECK_EQ(locked(), 3);
	CHECK_ERRNO(map(2, 0), EAGAIN);
	CHECK_EQ(munlockall(), 0);
	CHECK_EQ(locked(), 0);
	CHECK(map(2, 0) != MAP_FAILED);
	CHECK_EQ(locked(), 0);
	CHECK_EQ(munmap(at, 3 * PAGE), 0);

	limit_to(0);
	at = map(1, 0);
	CHECK_ERRNO(mlock(at, PAGE), EPERM);
	CHECK_ERRNO(mlockall(MCL_FUTURE), EPERM);
	/* Of this call musl makes ENOMEM. */
	CHECK_ERRNO(syscall(SYS_mmap, 0L, (long)PAGE, (long)PROT_READ, (long)(MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED),
			-1L, 0L),
	    EPERM);
	CHECK_EQ(munlock(at, PAGE), 0);
	CHECK_ERRNO(mlockall(0), EINVAL);
	CHECK_ERRNO(mlockall(4), EINVAL);
	CHECK_ERRNO(mlockall(8 | MCL_CURRENT), EINVAL);
}

int main(void)
{
	struct rlimit limit;

	/* Root has an unlimited amount. */
	if (geteuid() == 0)
		NEED(setuid(65534) == 0);
	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (limit.rlim_cur < 64 * 1024)
		check_skip("hardly any memory may be locked here");
	ranges();
	on_fault();
	others();
	limits();
	return check_done();
}
