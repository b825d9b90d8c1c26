/* Tests /proc/self/fdinfo of descriptors that are not ordinary files: which events an epoll
 * instance waits for, which signals a signalfd takes, whom a pidfd is about; and auxv. */
#include "check.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "slurp.h"

static char *info(int fd)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	return slurp(path);
}

static void check_epoll(void)
{
	int e = epoll_create1(0), p[2], lines = 0, fd;
	unsigned events;
	unsigned long long data;
	char *at;

	NEED(e >= 0 && pipe(p) == 0);
	CHECK_EQ(strstr(info(e), "tfd:") != NULL, 0);
	CHECK_EQ(
	    epoll_ctl(e, EPOLL_CTL_ADD, p[0], &(struct epoll_event){ .events = EPOLLIN, .data.u64 = 0x123456789abULL }),
	    0);
	CHECK_EQ(epoll_ctl(e, EPOLL_CTL_ADD, p[1], &(struct epoll_event){ .events = EPOLLOUT, .data.u32 = 1 }), 0);
	CHECK_EQ(
	    epoll_ctl(e, EPOLL_CTL_MOD, p[1], &(struct epoll_event){ .events = EPOLLOUT | EPOLLET, .data.u64 = 2 }), 0);
	for (at = strstr(info(e), "tfd:"); at; at = strstr(at + 1, "tfd:"), lines++) {
		NEED(sscanf(at, "tfd: %d events: %x data: %llx", &fd, &events, &data) == 3);
		CHECK(fd == p[0] || fd == p[1]);
		CHECK_EQ(data, fd == p[0] ? 0x123456789abULL : 2);
		/* Errors and hang-ups are waited for without being asked. */
		CHECK_EQ(events, EPOLLERR | EPOLLHUP | (fd == p[0] ? EPOLLIN : EPOLLOUT | EPOLLET));
	}
	CHECK_EQ(lines, 2);
	CHECK_EQ(epoll_ctl(e, EPOLL_CTL_DEL, p[1], NULL), 0);
	close(p[0]);
	CHECK_EQ(strstr(info(e), "tfd:") != NULL, 0);
	close(p[1]), close(e);
}

static void check_others(void)
{
	sigset_t set;
	int s, t, d, status;
	unsigned long long mask = 0;
	long long value = 0;
	pid_t child;
	int id = 0;

	sigemptyset(&set), sigaddset(&set, SIGUSR1), sigaddset(&set, SIGCHLD);
	NEED((s = signalfd(-1, &set, 0)) >= 0);
	NEED(strstr(info(s), "sigmask:") != NULL);
	CHECK_EQ(sscanf(strstr(text, "sigmask:"), "sigmask: %llx", &mask), 1);
	CHECK_EQ(mask, 1ULL << (SIGUSR1 - 1) | 1ULL << (SIGCHLD - 1));
	close(s);
	NEED((t = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
	CHECK_EQ(
	    timerfd_settime(t, 0, &(struct itimerspec){ .it_value = { 1000, 0 }, .it_interval = { 7, 5 } }, NULL), 0);
	CHECK(strstr(info(t), "it_interval: (7, 5)") != NULL);
	CHECK_EQ(sscanf(strstr(text, "it_value:"), "it_value: (%lld,", &value), 1);
	CHECK(value > 900 && value <= 1000);
	close(t);
	if (!(child = fork()))
		pause(), _exit(0);
	if ((d = (int)syscall(SYS_pidfd_open, child, 0)) >= 0) {
		CHECK_EQ(sscanf(strstr(info(d), "Pid:"), "Pid: %d", &id), 1);
		CHECK_EQ(id, child);
	}
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (d >= 0) {
		CHECK_EQ(sscanf(strstr(info(d), "Pid:"), "Pid: %d", &id), 1);
		CHECK_EQ(id, -1);
		close(d);
	}
}

static void check_auxv(void)
{
	unsigned long *word = (unsigned long *)slurp("/proc/self/auxv");
	size_t count = (size_t)text_length / sizeof *word;
	int pages = 0;

	NEED(count >= 4 && count % 2 == 0);
	CHECK_EQ(text_length % (2 * sizeof *word), 0);
	for (size_t i = 0; i < count; i += 2) {
		pages += word[i] == AT_PAGESZ && word[i + 1] == (unsigned long)sysconf(_SC_PAGESIZE);
		if (word[i] == AT_RANDOM || word[i] == AT_UID)
			CHECK_EQ(getauxval(word[i]), word[i + 1]);
	}
	CHECK_EQ(pages, 1);
	CHECK_EQ(word[count - 2], AT_NULL);
}

int main(void)
{
	if (access("/proc/self/fdinfo", R_OK))
		check_skip("no /proc here");
	check_epoll();
	check_others();
	check_auxv();
	return check_done();
}
