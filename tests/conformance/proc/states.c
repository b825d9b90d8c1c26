/* Tests stat and status of a process: whether it runs or sleeps, how nice it is, which signals wait
 * for it. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "slurp.h"

/* A field of stat by its number in proc(5), from 3 on. */
static const char *field(const char *path, int number)
{
	static char copy[4096];
	char *at;

	snprintf(copy, sizeof copy, "%s", slurp(path));
	at = strrchr(copy, ')');
	NEED(at != NULL);
	for (at += 2; number > 3; number--)
		NEED((at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) != NULL);
	at[strcspn(at, " \n")] = 0;
	return at;
}

static unsigned long long mask(const char *path, const char *name)
{
	char *at = strstr(slurp(path), name);

	NEED(at != NULL);
	return strtoull(at + strlen(name), NULL, 16);
}

/* Waits for a state to come, for as long as a loaded machine may take. */
static int comes(const char *path, char state)
{
	for (int i = 0; i < 2000; i++) {
		if (field(path, 3)[0] == state)
			return 1;
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	return 0;
}

static volatile int stop;

static void *spin(void *unused)
{
	while (!stop)
		;
	return unused;
}

static void check_states(void)
{
	char path[64];
	int p[2], status;
	pid_t child;

	CHECK_EQ(field("/proc/self/stat", 3)[0], 'R');
	NEED(pipe(p) == 0);
	if (!(child = fork())) {
		char byte;

		if (read(p[0], &byte, 1) != 1)
			_exit(1);
		spin(NULL);
	}
	snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
	CHECK(comes(path, 'S'));
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK(comes(path, 'R'));
	CHECK_EQ(kill(child, SIGSTOP), 0);
	CHECK(comes(path, 'T'));
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK(comes(path, 'Z'));
	CHECK_EQ(waitpid(child, &status, 0), child);
	close(p[0]), close(p[1]);
}

static void check_threads(void)
{
	char path[64], name[32];
	pthread_t thread;
	int running = 0;

	NEED(pthread_create(&thread, NULL, spin, NULL) == 0);
	for (int i = 0; i < 2000 && !running; i++) {
		DIR *tasks = opendir("/proc/self/task");
		struct dirent *entry;

		NEED(tasks != NULL);
		while ((entry = readdir(tasks)))
			if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid()) {
				snprintf(name, sizeof name, "%.20s", entry->d_name);
				snprintf(path, sizeof path, "/proc/self/task/%s/stat", name);
				running |= field(path, 3)[0] == 'R';
			}
		closedir(tasks);
		usleep(2000);
	}
	CHECK(running);
	stop = 1;
	pthread_join(thread, NULL);
}

static void check_nice(void)
{
	int before = getpriority(PRIO_PROCESS, 0);

	CHECK_EQ(atoi(field("/proc/self/stat", 19)), before);
	CHECK_EQ(atoi(field("/proc/self/stat", 18)), 20 + before);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, 7), 0);
	CHECK_EQ(atoi(field("/proc/self/stat", 19)), 7);
	CHECK_EQ(atoi(field("/proc/self/stat", 18)), 27);
}

static void check_signals(void)
{
	unsigned long long usr1 = 1ULL << (SIGUSR1 - 1), usr2 = 1ULL << (SIGUSR2 - 1),
			   real = 1ULL << (SIGRTMIN + 1 - 1);
	int queued = 0, most = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2), sigaddset(&set, SIGRTMIN + 1);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK_EQ(mask("/proc/self/status", "SigPnd:\t"), 0);
	CHECK_EQ(mask("/proc/self/status", "ShdPnd:\t"), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR2), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = i }), 0);
	CHECK_EQ(mask("/proc/self/status", "SigPnd:\t"), usr2);
	CHECK_EQ(mask("/proc/self/status", "ShdPnd:\t"), usr1 | real);
	CHECK_EQ(mask("/proc/self/status", "SigBlk:\t"), usr1 | usr2 | real);
	CHECK_EQ(sscanf(strstr(slurp("/proc/self/status"), "SigQ:\t"), "SigQ:\t%d/%d", &queued, &most), 2);
	CHECK(queued >= 5 && most > 0);
	CHECK_EQ(strtoull(field("/proc/self/stat", 31), NULL, 10) & (usr1 | usr2), usr2);
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }) > 0)
		;
	CHECK_EQ(mask("/proc/self/status", "SigPnd:\t") | mask("/proc/self/status", "ShdPnd:\t"), 0);
}

static void check_ids(void)
{
	int id = -1;

	CHECK_EQ(sscanf(strstr(slurp("/proc/self/status"), "NSpid:\t"), "NSpid:\t%d", &id), 1);
	CHECK_EQ(id, getpid());
	CHECK_EQ(sscanf(strstr(slurp("/proc/self/status"), "NSsid:\t"), "NSsid:\t%d", &id), 1);
	CHECK_EQ(id, getsid(0));
}

int main(void)
{
	if (access("/proc/self/stat", R_OK))
		check_skip("no /proc here");
	check_states();
	check_threads();
	check_signals();
	check_ids();
	check_nice();
	return check_done();
}
