/* mountinfo, mounts, stat and statfs agree on what is mounted where. */
#include "check.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "slurp.h"

/* As in mountinfo, a later mount hides an earlier one. */
static unsigned last_major, last_minor;
static char last_kind[64];

static int mounted_at(const char *wanted)
{
	char place[256], kind[64], copy[1 << 16], *rest;
	unsigned major, minor;
	int n = 0;

	snprintf(copy, sizeof copy, "%s", slurp("/proc/self/mountinfo"));
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *dash = strstr(line, " - ");

		NEED(dash && sscanf(line, "%*d %*d %u:%u %*s %255s", &major, &minor, place) == 3 &&
		    sscanf(dash, " - %63s", kind) == 1);
		if (!strcmp(place, wanted)) {
			last_major = major, last_minor = minor, n++;
			strcpy(last_kind, kind);
		}
	}
	return n;
}

int main(void)
{
	static const struct {
		const char *place, *kind;
		long type;
	} usual[] = {
		{ "/proc", "proc", 0x9fa0 },
		{ "/sys", "sysfs", 0x62656572 },
		{ "/dev/pts", "devpts", 0x1cd1 },
		{ "/dev/shm", "tmpfs", 0x1021994 },
	};
	cpu_set_t all, one;
	struct statfs fs;
	struct stat st;
	int cpu = 0;

	if (access("/proc/self/mountinfo", R_OK))
		check_skip("no /proc here");
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		if (!mounted_at(usual[i].place))
			continue;
		CHECK_STR(last_kind, usual[i].kind);
		NEED(stat(usual[i].place, &st) == 0 && statfs(usual[i].place, &fs) == 0);
		CHECK_EQ(st.st_dev, makedev(last_major, last_minor));
		CHECK_EQ(fs.f_type, usual[i].type);
		CHECK(strstr(slurp("/proc/mounts"), usual[i].place) != NULL);
	}
	if (mounted_at("/")) {
		NEED(stat("/", &st) == 0);
		/* A subvolume has a device of its own. */
		CHECK(st.st_dev == makedev(last_major, last_minor) || !strcmp(last_kind, "btrfs"));
	}
	CHECK_EQ(strncmp(slurp("/proc/self/uid_map"), "         0 ", 11), 0);

	/* Which processors there are does not depend on which the caller has chosen; which it may use
	 * does. */
	if (!access("/sys/devices/system/cpu/online", R_OK) && sched_getaffinity(0, sizeof all, &all) == 0) {
		char before[256], line[64];

		snprintf(before, sizeof before, "%.255s", slurp("/sys/devices/system/cpu/online"));
		while (!CPU_ISSET(cpu, &all))
			cpu++;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		NEED(sched_setaffinity(0, sizeof one, &one) == 0);
		CHECK_STR(slurp("/sys/devices/system/cpu/online"), before);
		snprintf(line, sizeof line, "\nCpus_allowed_list:\t%d\n", cpu);
		CHECK(strstr(slurp("/proc/self/status"), line) != NULL);
		NEED(sched_setaffinity(0, sizeof all, &all) == 0);
	}
	return check_done();
}
