/* /proc/self: what a process finds out about itself. Formats are read, values compared with what
 * other calls say. */
#include "check.h"
#include "slurp.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* The number after `Name:` in /proc/self/status. */
static long status_number(const char *name)
{
	char *at = strstr(text, name);

	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static void check_status(void)
{
	NEED(*slurp("/proc/self/status"));
	CHECK_EQ(strncmp(text, "Name:\t", 6), 0);
	CHECK_EQ(status_number("\nPid:\t"), getpid());
	CHECK_EQ(status_number("\nTgid:\t"), getpid());
	CHECK_EQ(status_number("\nPPid:\t"), getppid());
	CHECK_EQ(status_number("\nUid:\t"), getuid());
	CHECK_EQ(status_number("\nGid:\t"), getgid());
	CHECK_EQ(status_number("\nThreads:\t"), 1);
	CHECK(status_number("\nVmSize:\t") > 0);
	CHECK(status_number("\nVmRSS:\t") > 0);
	CHECK(strstr(text, "\nState:\tR (running)\n") != NULL);
	CHECK(strstr(text, "\nSigBlk:\t0000000000000000\n") != NULL);
}

static void check_stat(void)
{
	char state;
	int pid, ppid, group, session, n;
	unsigned long long start, size;
	long resident;

	NEED(*slurp("/proc/self/stat"));
	NEED(strrchr(text, ')') != NULL);
	CHECK_EQ(atoi(text), getpid());
	n = sscanf(strrchr(text, ')') + 2,
	    "%c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu %llu %ld", &state, &ppid,
	    &group, &session, &start, &size, &resident);
	CHECK_EQ(n, 7);
	CHECK_EQ(state, 'R');
	CHECK_EQ(ppid, getppid());
	CHECK_EQ(group, getpgrp());
	CHECK_EQ(session, getsid(0));
	CHECK(start > 0 && size > 4096 && resident > 0);
	/* 52 fields: the name may have blanks. */
	n = 2;
	for (char *at = strrchr(text, ')'); *at; at++)
		n += *at == ' ';
	CHECK_EQ(n, 52);
	NEED(*slurp("/proc/self/statm"));
	CHECK_EQ(sscanf(text, "%d %d", &pid, &n), 2);
	CHECK(pid >= n && n > 0);
}

static void check_links(void)
{
	char link[4096], cwd[4096], number[32];
	struct stat a, b;
	ssize_t n;

	NEED((n = readlink("/proc/self", link, sizeof link)) > 0);
	snprintf(number, sizeof number, "%d", (int)getpid());
	link[n] = 0;
	CHECK_STR(link, number);
	NEED((n = readlink("/proc/self/cwd", link, sizeof link - 1)) > 0);
	link[n] = 0;
	NEED(getcwd(cwd, sizeof cwd) != NULL);
	CHECK_STR(link, cwd);
	NEED(stat("/proc/self/cwd", &a) == 0 && stat(".", &b) == 0);
	CHECK(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
	NEED((n = readlink("/proc/self/root", link, sizeof link - 1)) > 0);
	link[n] = 0;
	CHECK_STR(link, "/");
	NEED((n = readlink("/proc/self/exe", link, sizeof link - 1)) > 0);
	link[n] = 0;
	CHECK(link[0] == '/');
	CHECK_EQ(access(link, F_OK), 0);
	NEED(stat("/proc/self/exe", &a) == 0);
	CHECK(S_ISREG(a.st_mode));
	CHECK_ERRNO(readlink("/proc/self/status", link, sizeof link), EINVAL);
	NEED(lstat("/proc/self", &a) == 0);
	CHECK(S_ISLNK(a.st_mode));
	NEED(stat("/proc/self", &a) == 0);
	CHECK(S_ISDIR(a.st_mode));
	CHECK_EQ(a.st_uid, geteuid());
}

static void check_cmdline(int argc, char **argv)
{
	int at = 0, which = 0;

	NEED(*slurp("/proc/self/cmdline"));
	for (; at < text_length && which < argc; at += (int)strlen(text + at) + 1)
		CHECK_STR(text + at, argv[which++]);
	CHECK_EQ(which, argc);
	CHECK_EQ(at, text_length);
	slurp("/proc/self/environ");
	NEED(strlen(slurp("/proc/self/comm")) > 1);
	CHECK(text_length <= 16);
	CHECK_EQ(text[text_length - 1], '\n');
}

static void check_maps(void)
{
	unsigned long start, end, last = 0;
	int own = 0, lines = 0;
	char flags[8];

	NEED(*slurp("/proc/self/maps"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		NEED(sscanf(line, "%lx-%lx %4s", &start, &end, flags) == 3);
		CHECK(start >= last && end > start);
		CHECK_EQ(strlen(flags), 4);
		last = end;
		own +=
		    (unsigned long)(uintptr_t)text >= start && (unsigned long)(uintptr_t)text < end && flags[1] == 'w';
	}
	CHECK_EQ(own, 1);
	CHECK(lines >= 2);
}

static void check_limits(void)
{
	struct rlimit files;
	char *row;

	NEED(getrlimit(RLIMIT_NOFILE, &files) == 0);
	NEED(*slurp("/proc/self/limits"));
	NEED((row = strstr(text, "\nMax open files ")) != NULL);
	CHECK_EQ(strtoll(row + 27, NULL, 10), files.rlim_cur);
	NEED(*slurp("/proc/self/mounts"));
	CHECK(strstr(text, " / ") != NULL);
	CHECK(strstr(text, " /proc proc ") != NULL);
	NEED(*slurp("/proc/mounts"));
	NEED(*slurp("/proc/self/mountinfo"));
	CHECK(strstr(text, " - proc ") != NULL);
}

int main(int argc, char **argv)
{
	if (access("/proc/self/stat", R_OK))
		check_skip("no /proc here");
	check_status();
	check_stat();
	check_links();
	check_cmdline(argc, argv);
	check_maps();
	check_limits();
	return check_done();
}
