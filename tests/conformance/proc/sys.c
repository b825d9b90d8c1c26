/* /sys, as far as programs look there for processors and interfaces. */
#include "check.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "slurp.h"

#define CPU "/sys/devices/system/cpu/"

/* The numbers of a list like 0-3,5. */
static int listed(const char *path, char *set, int most)
{
	int n = 0, from, to, used;

	for (char *at = slurp(path); sscanf(at, "%d%n", &from, &used) == 1; at += *at == ',') {
		to = from;
		at += used;
		if (*at == '-') {
			NEED(sscanf(at, "-%d%n", &to, &used) == 1);
			at += used;
		}
		for (; from <= to && from < most; from++, n++)
			set[from] = 1;
	}
	return n;
}

static int count_in(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	NEED(dir != NULL);
	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, prefix, strlen(prefix)) && entry->d_name[strlen(prefix)] >= '0' &&
		    entry->d_name[strlen(prefix)] <= '9';
	closedir(dir);
	return n;
}

static void check_processors(void)
{
	char online[1024] = { 0 }, possible[1024] = { 0 }, siblings[1024], path[128];
	int n = listed(CPU "online", online, 1024);
	cpu_set_t may;

	CHECK(n > 0);
	CHECK(n >= sysconf(_SC_NPROCESSORS_ONLN));
	CHECK(listed(CPU "possible", possible, 1024) >= n);
	CHECK(atoi(slurp(CPU "kernel_max")) > 0);
	NEED(sched_getaffinity(0, sizeof may, &may) == 0);
	for (int i = 0; i < 1024; i++) {
		if (CPU_ISSET(i, &may))
			CHECK(online[i]);
		if (!online[i])
			continue;
		CHECK(possible[i]);
		snprintf(path, sizeof path, CPU "cpu%d/topology/thread_siblings_list", i);
		memset(siblings, 0, sizeof siblings);
		CHECK(listed(path, siblings, 1024) > 0 && siblings[i]);
		snprintf(path, sizeof path, CPU "cpu%d/topology/core_id", i);
		CHECK(slurp(path)[0] >= '0' && text[0] <= '9');
		snprintf(path, sizeof path, CPU "cpu%d/topology/physical_package_id", i);
		CHECK_EQ(access(path, R_OK), 0);
	}
	CHECK(count_in(CPU, "cpu") >= n);
	CHECK_ERRNO(access(CPU "cpu1000", F_OK), ENOENT);
	CHECK_ERRNO(access(CPU "cpu00", F_OK), ENOENT);
	CHECK_ERRNO(open(CPU "online", O_RDONLY | O_DIRECTORY), ENOTDIR);
}

static void check_interfaces(void)
{
	char link[256] = "";

	CHECK_STR(slurp("/sys/class/net/lo/address"), "00:00:00:00:00:00\n");
	CHECK_STR(slurp("/sys/class/net/lo/mtu"), "65536\n");
	CHECK_EQ(atoi(slurp("/sys/class/net/lo/type")), 772);
	CHECK(readlink("/sys/class/net/lo", link, sizeof link - 1) > 0);
	CHECK_STR(link, "../../devices/virtual/net/lo");
}

/* A host built without huge pages has no folder for them. */
static void check_pages(void)
{
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		return;
	CHECK(strchr(slurp("/sys/kernel/mm/transparent_hugepage/enabled"), '[') != NULL);
	CHECK(atoi(slurp("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")) >= 1 << 16);
}

static void check_tree(void)
{
	struct statfs fs;
	struct stat st;

	CHECK_EQ(statfs("/sys", &fs), 0);
	CHECK_EQ(fs.f_type, 0x62656572);
	CHECK_EQ(stat("/sys/class/net/../net", &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_EQ(stat("/sys/../proc/self/../../sys/devices", &st), 0);
	CHECK(mkdir("/sys/new", 0700) == -1);
	CHECK(open("/sys/class/new", O_WRONLY | O_CREAT, 0600) == -1);
	CHECK_ERRNO(mkdir("/sys", 0700), EEXIST);
	NEED(chdir("/sys/devices") == 0);
	CHECK_EQ(access("system/cpu/online", R_OK), 0);
	CHECK_STR(getcwd((char[64]){ 0 }, 64), "/sys/devices");
}

int main(void)
{
	if (access(CPU "online", R_OK))
		check_skip("no /sys here");
	check_processors();
	check_interfaces();
	check_pages();
	check_tree();
	return check_done();
}
