/* Tests the settings that may be written in /proc: a process's score when memory runs out, the
 * names of its threads, its timers' slack. */
#include "check.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "slurp.h"

static ssize_t put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY), error;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, value, strlen(value));
	error = errno;
	close(fd);
	errno = error;
	return n;
}

static int number_in(const char *path)
{
	return atoi(slurp(path));
}

static void check_score(void)
{
	const char *score = "/proc/self/oom_score_adj";
	struct iovec parts[] = { { "5", 1 }, { "6\n", 2 } };
	int fd, status, before = number_in("/proc/self/oom_score");
	struct stat st;
	pid_t child;

	CHECK_EQ(stat(score, &st), 0);
	CHECK_EQ(st.st_mode, S_IFREG | 0644);
	CHECK_EQ(put(score, "300"), 3);
	CHECK_EQ(number_in(score), 300);
	CHECK(number_in("/proc/self/oom_score") >= before);
	CHECK_EQ(put(score, " 301 \n"), 6);
	CHECK_EQ(number_in(score), 301);
	if (!(child = fork())) {
		CHECK_EQ(number_in(score), 301);
		CHECK_EQ(put(score, "900"), 3);
		CHECK_EQ(number_in(score), 900);
		exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(number_in(score), 301);
	CHECK_ERRNO(put(score, "1001"), EINVAL);
	CHECK_ERRNO(put(score, "-1001"), EINVAL);
	CHECK_ERRNO(put(score, "many"), EINVAL);
	CHECK_EQ(number_in(score), 301);
	CHECK_EQ(put("/proc/self/oom_adj", "15"), 2);
	CHECK_EQ(number_in(score), 1000);
	CHECK_EQ(number_in("/proc/self/oom_adj"), 15);
	CHECK_ERRNO(put("/proc/self/oom_adj", "16"), EINVAL);

	NEED((fd = open(score, O_RDWR | O_TRUNC)) >= 0);
	CHECK_EQ(writev(fd, parts, 2), 3);
	CHECK_ERRNO(write(fd, (void *)8, 3), EFAULT);
	close(fd);
	CHECK_EQ(number_in(score), 6);
	NEED((fd = open(score, O_RDONLY)) >= 0);
	CHECK_ERRNO(write(fd, "7", 1), EBADF);
	close(fd);
	NEED((fd = open(score, O_WRONLY)) >= 0);
	CHECK_ERRNO(read(fd, parts, 1), EBADF);
	close(fd);
	CHECK_EQ(number_in(score), 6);
	CHECK_EQ(put(score, "0"), 1);
}

static int waits[2];
static _Atomic int second;

static void *wait_here(void *unused)
{
	char byte;

	second = (int)syscall(SYS_gettid);
	CHECK_EQ(write(waits[1], "x", 1), 1);
	while (read(waits[0], &byte, 1) == 1 && byte != 'y')
		CHECK_EQ(write(waits[1], "x", 1), 1);
	return unused;
}

static void check_names(void)
{
	char name[16] = "", path[64];
	pthread_t thread;

	CHECK_EQ(put("/proc/self/comm", "first"), 5);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK_STR(name, "first");
	CHECK_STR(slurp("/proc/self/comm"), "first\n");
	NEED(pipe(waits) == 0 && pthread_create(&thread, NULL, wait_here, NULL) == 0);
	while (!second)
		usleep(1000);
	snprintf(path, sizeof path, "/proc/self/task/%d/comm", second);
	CHECK_EQ(put(path, "a name that is too long"), 23);
	CHECK_STR(slurp(path), "a name that is \n");
	CHECK_STR(slurp("/proc/self/comm"), "first\n");
	CHECK_EQ(write(waits[1], "y", 1), 1);
	pthread_join(thread, NULL);
	close(waits[0]), close(waits[1]);
}

static void check_slack(void)
{
	if (access("/proc/self/timerslack_ns", W_OK))
		return;
	CHECK_EQ(put("/proc/self/timerslack_ns", "12345"), 5);
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), 12345);
	CHECK_EQ(number_in("/proc/self/timerslack_ns"), 12345);
	CHECK_EQ(put("/proc/self/timerslack_ns", "0"), 1);
	CHECK(number_in("/proc/self/timerslack_ns") != 0);
}

int main(void)
{
	if (access("/proc/self/oom_score_adj", W_OK))
		check_skip("no /proc here");
	check_score();
	check_names();
	check_slack();
	return check_done();
}
