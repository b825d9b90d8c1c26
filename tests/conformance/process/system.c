/* uname, sysinfo, getrandom, sysconf, sched_*: what a program asks about where it runs. */
#include "check.h"

#include <sched.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

static void randomness(void)
{
	unsigned char a[64] = { 0 }, b[64] = { 0 };
	int same = 0;

	CHECK_EQ(getrandom(a, sizeof a, 0), sizeof a);
	CHECK_EQ(getrandom(b, sizeof b, GRND_NONBLOCK), sizeof b);
	for (size_t i = 0; i < sizeof a; i++)
		same += a[i] == b[i];
	CHECK(same < 16);
	CHECK_EQ(getrandom(a, 0, 0), 0);
	CHECK_ERRNO(getrandom(a, 1, 1 << 20), EINVAL);
	CHECK_EQ(getentropy(a, 32), 0);
}

int main(void)
{
	struct utsname name;
	struct sysinfo info;
	cpu_set_t set;
	char host[256];

	NEED(uname(&name) == 0);
	CHECK_STR(name.sysname, "Linux");
	CHECK(name.release[0] >= '2' && name.release[0] <= '9');
	CHECK(name.machine[0]);
	CHECK_EQ(gethostname(host, sizeof host), 0);
	CHECK_STR(host, name.nodename);

	NEED(sysinfo(&info) == 0);
	CHECK(info.uptime > 0);
	CHECK(info.procs >= 1);
	CHECK(info.mem_unit >= 1);
	CHECK(info.totalram > 0 && info.freeram <= info.totalram);

	CHECK_EQ(sysconf(_SC_PAGESIZE), 4096);
	CHECK_EQ(getpagesize(), 4096);
	CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
	CHECK_EQ(sysconf(_SC_CLK_TCK), 100);
	CHECK(sysconf(_SC_PHYS_PAGES) > 0);

	CHECK_EQ(sched_yield(), 0);
	NEED(sched_getaffinity(0, sizeof set, &set) == 0);
	CHECK(CPU_COUNT(&set) >= 1);
	CHECK_EQ(sched_get_priority_max(SCHED_FIFO), 99);
	CHECK_EQ(sched_get_priority_min(SCHED_FIFO), 1);
	struct timespec slice = { -1, -1 };
	CHECK_EQ(sched_rr_get_interval(0, &slice), 0);
	CHECK_EQ(slice.tv_sec, 0);
	CHECK(slice.tv_nsec >= 0 && slice.tv_nsec < 1000000000);
	CHECK_ERRNO(sched_rr_get_interval(99999999, &slice), ESRCH);
	randomness();
	return check_done();
}
