/* RLIMIT_AS: what is too much is refused, and asking for less works again. */
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define MIB (1 << 20)

static void set(int resource, rlim_t to)
{
	struct rlimit limit;

	NEED(getrlimit(resource, &limit) == 0);
	limit.rlim_cur = to < limit.rlim_max ? to : limit.rlim_max;
	NEED(setrlimit(resource, &limit) == 0);
}

static void *map(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void address_space(void)
{
	size_t most = 0;
	void *p;

	/* Less than what is mapped already: nothing more can be. */
	set(RLIMIT_AS, 16384);
	CHECK_ERRNO(map(MIB), ENOMEM);
	CHECK_ERRNO(malloc(64 * MIB), ENOMEM);
	set(RLIMIT_AS, RLIM_INFINITY);
	p = map(MIB);
	NEED(p != MAP_FAILED);
	/* Some limit between nothing and 2 GiB lets 64 MiB through and not much more. */
	for (size_t mib = 1; mib < 2048 && !most; mib *= 2) {
		set(RLIMIT_AS, (rlim_t)mib * MIB);
		p = map(64 * (size_t)MIB);
		if (p != MAP_FAILED) {
			most = mib;
			CHECK_ERRNO(map(mib * MIB), ENOMEM);
			CHECK_EQ(munmap(p, 64 * MIB), 0);
			p = map(64 * (size_t)MIB);
			CHECK(p != MAP_FAILED);
			munmap(p, 64 * MIB);
		}
	}
	CHECK(most != 0);
	set(RLIMIT_AS, RLIM_INFINITY);
}

int main(void)
{
	address_space();
	return check_done();
}
