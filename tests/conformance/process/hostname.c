/* Tests reading and setting the host name. On Linux in a namespace of its own. */
#include "check.h"
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static void check_says(const char *path, const char *name)
{
	char text[80] = "";
	int fd = open(path, O_RDONLY);
	ssize_t got = read(fd, text, sizeof text - 1);

	close(fd);
	NEED(got > 0);
	CHECK_EQ(text[got - 1], '\n');
	text[got - 1] = 0;
	CHECK_STR(text, name);
}

static void check_name(const char *host, const char *domain)
{
	struct utsname name;
	char text[80];

	CHECK_EQ(uname(&name), 0);
	CHECK_STR(name.nodename, host);
	CHECK_STR(name.domainname, domain);
	CHECK_EQ(gethostname(text, sizeof text), 0);
	CHECK_STR(text, host);
	CHECK_EQ(getdomainname(text, sizeof text), 0);
	CHECK_STR(text, domain);
	check_says("/proc/sys/kernel/hostname", host);
	check_says("/proc/sys/kernel/domainname", domain);
}

int main(void)
{
	char longest[65];
	int status, pid;

	if (geteuid()) {
		CHECK_ERRNO(sethostname("x", 1), EPERM);
		CHECK_ERRNO(setdomainname("x", 100), EPERM);
		return check_done();
	}
#ifndef __wasm__
	if (unshare(CLONE_NEWUTS))
		check_skip("no namespace for a name of its own");
#endif
	CHECK_EQ(sethostname("one", 3), 0);
	CHECK_EQ(setdomainname("two.three and more", 9), 0);
	check_name("one", "two.three");
	CHECK_ERRNO(sethostname("x", 65), EINVAL);
	CHECK_ERRNO(setdomainname("x", (size_t)-1), EINVAL);
	CHECK_ERRNO(syscall(SYS_sethostname, (void *)8, 4), EFAULT);
	check_name("one", "two.three");
	memset(longest, 'n', 64);
	longest[64] = 0;
	CHECK_EQ(sethostname(longest, 64), 0);
	check_name(longest, "two.three");
	/* It is not only the caller's. */
	if (!(pid = fork())) {
		check_name(longest, "two.three");
		CHECK_EQ(sethostname("child\0hidden", 12), 0);
		_exit(check_done());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	check_name("child", "two.three");
	CHECK_EQ(setdomainname("", 0), 0);
	CHECK_EQ(sethostname("", 0), 0);
	return check_done();
}
