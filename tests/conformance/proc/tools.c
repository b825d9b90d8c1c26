/* Tests other files that ps, top, vmstat and their like open in /proc. */
#include "check.h"
#include "slurp.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static long long number(const char *path)
{
	char *end;
	long long value = strtoll(slurp(path), &end, 10);

	CHECK(end != text);
	return value;
}

static long long row(const char *name)
{
	size_t length = strlen(name);

	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, length) && line[length] == ' ')
			return atoll(line + length);
	}
	return -1;
}

static void machine(void)
{
	long long before;

	slurp("/proc/vmstat");
	CHECK(row("nr_free_pages") > 0);
	CHECK(row("pgpgin") >= 0);
	CHECK(row("pgpgout") >= 0);
	CHECK(row("pswpin") >= 0);
	CHECK(row("pswpout") >= 0);
	before = row("pgfault");
	CHECK(before > 0);
	CHECK(row("pgmajfault") >= 0);
	CHECK(row("pgfault ") < 0);
	CHECK_EQ(strncmp(slurp("/proc/partitions"), "major minor  #blocks  name\n\n", 28), 0);
	slurp("/proc/diskstats");
	CHECK(number("/proc/sys/kernel/msgmax") >= 8192);
	CHECK(number("/proc/sys/kernel/msgmnb") >= 16384);
	CHECK(number("/proc/sys/kernel/msgmni") > 0);
	CHECK(number("/proc/sys/kernel/shmmni") > 0);
	CHECK(number("/proc/sys/kernel/threads-max") > 0);
	CHECK(number("/proc/sys/kernel/random/entropy_avail") > 0);
	CHECK(number("/proc/sys/kernel/random/poolsize") > 0);
	CHECK_EQ(sscanf(slurp("/proc/sys/kernel/sem"), "%lld %lld %lld %lld", &before, &before, &before, &before), 4);
}

static void process(void)
{
	volatile unsigned work = 1;
	long long before;

	CHECK(strlen(slurp("/proc/self/wchan")) > 0);
	CHECK_EQ(strchr(text, '\n') != NULL, 0);
	CHECK_EQ(strlen(slurp("/proc/self/personality")), 9);
	CHECK_EQ(number("/proc/self/oom_adj"), 0);
	before = number("/proc/self/schedstat");
	CHECK(before >= 0);
	for (long i = 0; i < 100000000; i++)
		work *= 3;
	CHECK(number("/proc/self/schedstat") > before);
	CHECK_EQ(sscanf(text, "%lld %lld %lld", &before, &before, &before), 3);
	CHECK_EQ(prctl(PR_SET_TIMERSLACK, 12345), 0);
	CHECK_EQ(number("/proc/self/timerslack_ns"), 12345);
	CHECK_EQ(prctl(PR_SET_TIMERSLACK, 0), 0);
	CHECK_EQ(number("/proc/self/timerslack_ns"), 50000);
	if (access("/proc/self/loginuid", R_OK) == 0) {
		CHECK(number("/proc/self/loginuid") >= 0);
		CHECK(number("/proc/self/sessionid") >= 0);
	}
}

static void children(void)
{
	char path[64], wanted[64];
	pid_t first, second;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	if (access(path, R_OK))
		return;
	CHECK_STR(slurp(path), "");
	first = fork();
	if (first == 0)
		for (;;)
			pause();
	second = fork();
	if (second == 0)
		for (;;)
			pause();
	NEED(first > 0 && second > 0);
	snprintf(wanted, sizeof wanted, "%d %d ", (int)first, (int)second);
	CHECK_STR(slurp(path), wanted);
	kill(first, SIGKILL);
	kill(second, SIGKILL);
	CHECK_EQ(waitpid(first, NULL, 0), first);
	CHECK_EQ(waitpid(second, NULL, 0), second);
	CHECK_STR(slurp(path), "");
}

int main(void)
{
	if (access("/proc/vmstat", R_OK))
		check_skip("no /proc here");
	machine();
	process();
	children();
	return check_done();
}
