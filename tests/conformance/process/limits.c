/* getrlimit, setrlimit, prlimit. */
#include "check.h"

#include <sys/resource.h>

/* On Linux a resource's number can be written either way. */
static int limit(int resource, const struct rlimit *set, struct rlimit *get)
{
	return prlimit(0, resource, set, get);
}

int main(void)
{
	struct rlimit a, b, set;

	for (int resource = 0; resource < 16; resource++) {
		NEED(getrlimit(resource, &a) == 0 && limit(resource, NULL, &b) == 0);
		CHECK_EQ(a.rlim_cur, b.rlim_cur);
		CHECK_EQ(a.rlim_max, b.rlim_max);
		CHECK(a.rlim_cur <= a.rlim_max);
	}
	CHECK_ERRNO(getrlimit(16, &a), EINVAL);
	CHECK_ERRNO(getrlimit(-1, &a), EINVAL);

	NEED(getrlimit(RLIMIT_NOFILE, &a) == 0 && a.rlim_max >= 64);
	set = (struct rlimit){ 50, a.rlim_max };
	CHECK_EQ(limit(RLIMIT_NOFILE, &set, &b), 0);
	CHECK_EQ(b.rlim_cur, a.rlim_cur);
	NEED(getrlimit(RLIMIT_NOFILE, &b) == 0);
	CHECK_EQ(b.rlim_cur, 50);
	CHECK_EQ(sysconf(_SC_OPEN_MAX), 50);
	set = (struct rlimit){ 51, 50 };
	CHECK_ERRNO(setrlimit(RLIMIT_NOFILE, &set), EINVAL);
	set = (struct rlimit){ 50, 60 };
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &set), 0);
	if (geteuid() != 0) {
		set.rlim_max = 61;
		CHECK_ERRNO(setrlimit(RLIMIT_NOFILE, &set), EPERM);
	}
	NEED(getrlimit(RLIMIT_CORE, &a) == 0);
	set = (struct rlimit){ 0, a.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_CORE, &set), 0);
	/* Beyond 4 GiB and without a limit. */
	NEED(getrlimit(RLIMIT_FSIZE, &a) == 0);
	set = (struct rlimit){ 0x300000000, a.rlim_max };
	if (a.rlim_max >= set.rlim_cur) {
		CHECK_EQ(setrlimit(RLIMIT_FSIZE, &set), 0);
		NEED(getrlimit(RLIMIT_FSIZE, &b) == 0);
		CHECK_EQ(b.rlim_cur, 0x300000000);
		CHECK_EQ(b.rlim_max, a.rlim_max);
	}
	CHECK_ERRNO(prlimit(999999999, RLIMIT_NOFILE, NULL, &a), ESRCH);
	return check_done();
}
