/* /proc about the machine: what ps, top, free and uptime read. */
#include "check.h"
#include "slurp.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

static long kilobytes(const char *name)
{
	char *row = strstr(text, name);

	return row ? strtol(row + strlen(name), NULL, 10) : -1;
}

int main(void)
{
	unsigned long long user, nice, system, idle;
	double one, two, three, up;
	struct utsname name;
	int a, b, c, cpus = 0;
	char uuid[64];

	if (access("/proc/stat", R_OK))
		check_skip("no /proc here");
	slurp("/proc/meminfo");
	CHECK(kilobytes("MemTotal:") > 0);
	CHECK(kilobytes("MemFree:") >= 0);
	CHECK(kilobytes("MemAvailable:") >= 0);
	CHECK(kilobytes("Buffers:") >= 0);
	CHECK(kilobytes("\nCached:") >= 0);
	CHECK(kilobytes("SwapTotal:") >= 0);

	slurp("/proc/stat");
	CHECK_EQ(sscanf(text, "cpu %llu %llu %llu %llu", &user, &nice, &system, &idle), 4);
	for (char *at = text; (at = strstr(at, "\ncpu")); at++)
		cpus++;
	CHECK(cpus >= 1);
	CHECK(strstr(text, "\nbtime ") != NULL);
	CHECK(strstr(text, "\nprocs_running ") != NULL);

	CHECK_EQ(sscanf(slurp("/proc/loadavg"), "%lf %lf %lf %d/%d %d", &one, &two, &three, &a, &b, &c), 6);
	CHECK(a >= 1 && b >= a && c >= 1);
	CHECK_EQ(sscanf(slurp("/proc/uptime"), "%lf %lf", &up, &one), 2);
	CHECK(up > 0);
	CHECK_EQ(strncmp(slurp("/proc/version"), "Linux version ", 14), 0);
	CHECK(strstr(slurp("/proc/cpuinfo"), "processor\t: ") != NULL);
	CHECK(strstr(slurp("/proc/filesystems"), "nodev\tproc\n") != NULL);

	NEED(uname(&name) == 0);
	strcat(name.release, "\n");
	strcat(name.nodename, "\n");
	CHECK_STR(slurp("/proc/sys/kernel/osrelease"), name.release);
	CHECK_STR(slurp("/proc/sys/kernel/hostname"), name.nodename);
	CHECK_STR(slurp("/proc/sys/kernel/ostype"), "Linux\n");
	CHECK(atol(slurp("/proc/sys/kernel/pid_max")) > 1000);
	CHECK_EQ(atol(slurp("/proc/sys/kernel/ngroups_max")), 65536);
	CHECK(atol(slurp("/proc/sys/kernel/cap_last_cap")) > 30);
	CHECK(atol(slurp("/proc/sys/fs/file-max")) > 0);
	slurp("/proc/sys/vm/overcommit_memory");
	CHECK_EQ(strlen(slurp("/proc/sys/kernel/random/uuid")), 37);
	strcpy(uuid, text);
	CHECK(strcmp(slurp("/proc/sys/kernel/random/uuid"), uuid) != 0);
	CHECK_EQ(text[14], '4');
	strcpy(uuid, slurp("/proc/sys/kernel/random/boot_id"));
	CHECK_STR(slurp("/proc/sys/kernel/random/boot_id"), uuid);
	return check_done();
}
