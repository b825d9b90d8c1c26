/*
 * Processes born, busy and killed without pause, then nothing may be left.
 *
 *     cage_stress [SECONDS ALIVE FORKS THREADED THREADS [SEED]]
 *
 * ALIVE children are kept alive, THREADED of them with THREADS threads each. For SECONDS, and until
 * there have been FORKS more children, it forks children that end in different ways, and kills
 * ALIVE ones at random to put others in their place. In the end it kills them all, waits for all,
 * and finds no child, no process and no descriptor that was not there before. `60 1000 10000 20
 * 100` is the whole test; without arguments it is a short one. With "-w" first it says `begin` and
 * `end`, and waits for a line after each, so that whoever runs it can look at the process from
 * outside (tests/stress/run).
 */
#include "bench.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long seconds = 2, alive = 40, forks = 300, threaded = 2, threads = 10;
static pid_t *kept;
static int up[2];

static _Noreturn void wrong(const char *what, long got, long want)
{
	fprintf(stderr, "cage_stress: %s: %ld, not %ld\n", what, got, want);
	kill(0, SIGKILL);
	_exit(1);
}

static unsigned long below(unsigned long limit)
{
	return bench_random() % limit;
}

static pid_t make(void)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_die("fork");
	return pid;
}

static long entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	long n = 0;

	if (!dir)
		bench_die(path);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Threads that compute, wait and talk to one another, until the process is killed. They rest for as
 * long as lets 2,000 of them do so on two processors: with a fifth of that they want more than
 * there is, here sooner than natively, and those who fork get one share in hundreds
 * (docs/processes.md, Limits). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile long turns;

static void *busy(void *number)
{
	for (unsigned i = (unsigned)(long)number;; i++) {
		pthread_mutex_lock(&lock);
		turns++;
		if (i % 3 == 0)
			pthread_cond_broadcast(&changed);
		else if (i % 3 == 1) {
			struct timespec soon;
			clock_gettime(CLOCK_REALTIME, &soon);
			soon.tv_sec += 1;
			pthread_cond_timedwait(&changed, &lock, &soon);
		}
		pthread_mutex_unlock(&lock);
		if (i % 3 == 2) {
			struct timespec pause = { 0, 100 * 1000 * 1000 };
			nanosleep(&pause, NULL);
		}
	}
	return NULL;
}

/* One of those kept alive. Says when it is up. */
static pid_t keep(long index)
{
	pid_t pid = make();

	if (pid)
		return pid;
	if (index < threaded) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 64 << 10);
		for (long i = 0; i < threads; i++)
			if (pthread_create(&thread, &attr, busy, (void *)i))
				_exit(3);
	}
	if (write(up[1], "u", 1) != 1)
		_exit(4);
	for (;;)
		pause();
}

static void wait_up(long n)
{
	char bytes[64];

	while (n) {
		ssize_t got = read(up[0], bytes, n < 64 ? (size_t)n : 64);
		if (got <= 0)
			bench_die("read from children");
		n -= got;
	}
}

static void nothing(int sig)
{
	(void)sig;
}

/* A short life, and the status it should end with. */
static int live(unsigned kind)
{
	char *memory;
	int pipes[2];
	pid_t child;

	switch (kind) {
	case 0:
		_exit(7);
	case 1:
		raise(SIGKILL);
		break;
	case 2: /* memory that is touched, some of it shared */
		memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
		if (memory == MAP_FAILED)
			_exit(3);
		memset(memory, 1, 1 << 20);
		memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
		if (memory == MAP_FAILED)
			_exit(3);
		if (make() == 0) {
			memory[5] = 5;
			_exit(0);
		}
		wait(NULL);
		_exit(memory[5]);
	case 3: /* a child that nobody waits for */
		if (make() == 0) {
			usleep(1000);
			_exit(0);
		}
		_exit(3);
	case 4: /* a pipe to a child that goes away */
		if (pipe(pipes))
			_exit(3);
		child = make();
		if (child == 0) {
			char byte;
			close(pipes[1]);
			_exit(read(pipes[0], &byte, 1) == 1 ? byte : 0);
		}
		close(pipes[0]);
		if (write(pipes[1], "\x09", 1) != 1)
			_exit(3);
		int status = 0;
		waitpid(child, &status, 0);
		_exit(WEXITSTATUS(status));
	case 5: /* ended by a thread while others compute */
		for (int i = 0; i < 3; i++) {
			pthread_t thread;
			if (pthread_create(&thread, NULL, busy, (void *)(long)i))
				_exit(3);
		}
		_exit(11);
	case 6: /* signals and timers that are never taken */
		signal(SIGALRM, nothing);
		ualarm(100, 100);
		for (volatile int i = 0; i < 100000; i++)
			;
		_exit(12);
	case 7: /* stopped, continued, killed by the parent, see below */
		for (;;)
			pause();
	}
	_exit(3);
}

static const int ends[8] = { 7, -SIGKILL, 5, 3, 9, 11, 12, -SIGTERM };

static void short_life(unsigned kind)
{
	pid_t pid = make();
	int status, end;

	if (pid == 0)
		live(kind);
	if (kind == 7) {
		kill(pid, SIGSTOP);
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
			wrong("status of a stopped child", status, SIGSTOP << 8 | 0x7f);
		kill(pid, SIGTERM);
		kill(pid, SIGCONT);
	}
	if (waitpid(pid, &status, 0) != pid)
		bench_die("waitpid");
	end = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	if (end != ends[kind])
		wrong("end of a child", end, ends[kind]);
}

static void replace(long index)
{
	int status;

	kill(kept[index], SIGKILL);
	if (waitpid(kept[index], &status, 0) != kept[index])
		bench_die("waitpid");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		wrong("status of a child that was killed", status, SIGKILL);
	kept[index] = keep(index);
	wait_up(1);
}

static void say(int waits, const char *what)
{
	char line[8];

	if (!waits)
		return;
	printf("%s\n", what);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		exit(1);
}

int main(int argc, char **argv)
{
	int waits = argc > 1 && strcmp(argv[1], "-w") == 0;
	long *numbers[] = { &seconds, &alive, &forks, &threaded, &threads };
	long made = 0, killed = 0, processes, descriptors;

	argv += waits, argc -= waits;
	for (int i = 1; i < argc && i <= 5; i++)
		*numbers[i - 1] = strtol(argv[i], NULL, 10);
	for (long i = argc > 6 ? strtol(argv[6], NULL, 10) : 0; i > 0; i--)
		bench_random();
	kept = calloc((size_t)alive + 1, sizeof *kept);
	if (!kept || alive < 1)
		bench_die("calloc");
	/* A group of its own: what goes wrong takes nobody else along. */
	setpgid(0, 0);
	/* Descriptors that are made once, and kept, exist before the count. */
	short_life(5);
	descriptors = entries("/proc/self/fd");
	processes = entries("/proc");
	if (pipe(up))
		bench_die("pipe");
	say(waits, "begin");

	long long start = gettimens();
	for (long i = 0; i < alive; i++)
		kept[i] = keep(i);
	wait_up(alive);
	for (long i = 0; i < alive; i++)
		if (kill(kept[i], 0))
			bench_die("a child that should be alive");
	long long churn = gettimens();
	while (made < forks || gettimens() - start < seconds * 1000000000LL) {
		if (below(4) == 0) {
			replace((long)below((unsigned long)alive));
			killed++;
		} else {
			short_life((unsigned)below(8));
		}
		made++;
	}
	emit_since("stress", alive, made, churn);

	for (long i = 0; i < alive; i++)
		kill(kept[i], SIGKILL);
	for (long i = 0; i < alive; i++)
		if (waitpid(kept[i], NULL, 0) != kept[i])
			bench_die("waitpid at the end");
	if (waitpid(-1, NULL, 0) != -1 || errno != ECHILD)
		wrong("children left", 1, 0);
	close(up[0]);
	close(up[1]);
	/* Orphans may take a moment to end. On Linux others come and go too. */
	for (int i = 0; waits && entries("/proc") != processes; i++) {
		if (i == 5000)
			wrong("processes", entries("/proc"), processes);
		usleep(1000);
	}
	if (entries("/proc/self/fd") != descriptors)
		wrong("descriptors", entries("/proc/self/fd"), descriptors);
	if (waits)
		printf("%ld forked, %ld of %ld killed\n", made + alive, killed, alive);
	say(waits, "end");
	free(kept);
	return 0;
}
