/* /proc shows all processes there are: parents and siblings too, and of another user's not what
 * only its owner may see. */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "slurp.h"

static const char *in(pid_t pid, const char *name)
{
	static char path[4][64];
	static int next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof path[next], "/proc/%d/%s", (int)pid, name);
	return path[next];
}

static int is_listed(pid_t pid)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	NEED(all != NULL);
	while ((entry = readdir(all)))
		found |= atoi(entry->d_name) == pid;
	closedir(all);
	return found;
}

/* The facts that any process may know about another, and those that only processes of the same user
 * may know. */
static void look_at(pid_t pid, int same_user)
{
	char link[512], line[64];
	DIR *files;

	CHECK(is_listed(pid));
	snprintf(line, sizeof line, "\nPid:\t%d\n", (int)pid);
	CHECK(strstr(slurp(in(pid, "status")), line) != NULL);
	CHECK(slurp(in(pid, "cmdline"))[0] != 0);
	CHECK(access(in(pid, "stat"), R_OK) == 0);
	if (same_user) {
		CHECK(readlink(in(pid, "cwd"), link, sizeof link) > 0);
		CHECK((files = opendir(in(pid, "fd"))) != NULL && !closedir(files));
		return;
	}
	CHECK_ERRNO(readlink(in(pid, "cwd"), link, sizeof link), EACCES);
	CHECK_ERRNO(readlink(in(pid, "exe"), link, sizeof link), EACCES);
	CHECK_ERRNO(open(in(pid, "environ"), O_RDONLY), EACCES);
	CHECK(!opendir(in(pid, "fd")) && errno == EACCES);
	CHECK_ERRNO(open(in(pid, "fd/0"), O_RDONLY), EACCES);
	CHECK_ERRNO(chdir(in(pid, "cwd")), EACCES);
	CHECK_ERRNO(open(in(pid, "root/proc"), O_RDONLY), EACCES);
}

static void check_family(void)
{
	pid_t sibling, child;
	int status;

	if (!(sibling = fork()))
		for (;;)
			pause();
	for (int same_user = geteuid() != 0; same_user < 2; same_user++) {
		if (!(child = fork())) {
			if (!same_user && (setgid(65534) || setuid(65534)))
				_exit(1);
			look_at(getppid(), same_user);
			look_at(sibling, same_user);
			_exit(check_done());
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(kill(sibling, SIGKILL), 0);
	CHECK_EQ(waitpid(sibling, &status, 0), sibling);
}

static void check_texts(void)
{
	unsigned long long read = 1;
	long most = atol(slurp("/proc/sys/kernel/pid_max"));
	int fd, status;
	pid_t child;

	CHECK(most > getpid() && most <= 1 << 22);
	CHECK_EQ(sscanf(slurp("/proc/self/io"), "rchar: %llu", &read), 1);
	CHECK(strstr(slurp("/proc/self/io"), "\ncancelled_write_bytes: ") != NULL);
	CHECK_EQ(strtoul(slurp("/proc/self/coredump_filter"), NULL, 16), 0x33);
	NEED((fd = open("/proc/self/coredump_filter", O_WRONLY)) >= 0);
	CHECK_EQ(write(fd, "0x7\n", 4), 4);
	CHECK_ERRNO(write(fd, "x", 1), EINVAL);
	close(fd);
	if (!(child = fork()))
		_exit(strcmp(slurp("/proc/self/coredump_filter"), "00000007\n") != 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(void)
{
	if (access("/proc/self/stat", R_OK))
		check_skip("no /proc here");
	check_family();
	check_texts();
	return check_done();
}
