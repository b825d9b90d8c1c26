/* personality(2): the value is returned, inherited and kept over exec; two of its flags change the
 * results of other calls. */
#include "../check.h"
#include <sys/personality.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static int asked(void)
{
	return personality(0xffffffff);
}

/* As a new program, in a child. */
static void anew(char *self, const char *what)
{
	int status = -1;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		execl(self, self, what, NULL);
		_exit(9);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static long long left_after_select(void)
{
	struct timeval time = { 0, 2000 };

	/* Musl's own select leaves the time alone. */
	CHECK_EQ(syscall(SYS_select, 0L, NULL, NULL, NULL, &time), 0);
	return time.tv_usec;
}

int main(int argc, char **argv)
{
	struct utsname name;
	char told[16] = "";
	int fd;

	if (argc > 1)
		return asked() != atoi(argv[1]);
	CHECK_EQ(asked(), 0);
	CHECK_EQ(personality(ADDR_NO_RANDOMIZE), 0);
	CHECK_EQ(asked(), ADDR_NO_RANDOMIZE);
	CHECK_EQ(personality(ADDR_NO_RANDOMIZE | WHOLE_SECONDS), ADDR_NO_RANDOMIZE);
	CHECK_EQ(personality(PER_SVR4), ADDR_NO_RANDOMIZE | WHOLE_SECONDS);
	CHECK_EQ(personality(PER_LINUX), PER_SVR4);
	CHECK_EQ(left_after_select(), 0);
	CHECK_EQ(personality(STICKY_TIMEOUTS), 0);
	CHECK_EQ(left_after_select(), 2000);
	CHECK_EQ(personality(UNAME26), STICKY_TIMEOUTS);
	CHECK(uname(&name) == 0 && !strncmp(name.release, "2.6.", 4));
	anew(argv[0], "131072");
	fd = open("/proc/self/personality", O_RDONLY);
	if (fd >= 0) {
		CHECK_EQ(read(fd, told, sizeof told - 1), 9);
		CHECK_STR(told, "00020000\n");
		close(fd);
	}
	CHECK_EQ(personality(0), UNAME26);
	CHECK(uname(&name) == 0 && strncmp(name.release, "2.6.", 4));
	return check_done();
}
