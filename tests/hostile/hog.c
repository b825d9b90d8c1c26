/* Takes as much of one kind of thing as it gets, of those that a cage has outside its memory, and
 * waits a moment: hog KIND. cases.py runs it. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 200000
#define MIB  (1 << 20)

static char mib[MIB];
static char name[64];

static int semaphores(int n)
{
	(void)n;
	return semget(IPC_PRIVATE, 32000, 0600 | IPC_CREAT);
}

/* Notes of what is to be given back, by ever more processes: one for each semaphore. */
static int undo(int n)
{
	static int id = -1;

	if (n % 32000 == 0 && (id = semget(IPC_PRIVATE, 32000, 0600 | IPC_CREAT)) < 0)
		return -1;
	return semop(id, &(struct sembuf){ (unsigned short)(n % 32000), 1, SEM_UNDO }, 1);
}

static int messages(int n)
{
	static int id = -1;
	struct {
		long type;
		char text;
	} empty = { 1, 0 };

	if (n % 16384 == 0 && (id = msgget(IPC_PRIVATE, 0600 | IPC_CREAT)) < 0)
		return -1;
	return msgsnd(id, &empty, 0, IPC_NOWAIT);
}

static int queued(int n)
{
	sigset_t all;

	if (n == 0) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
	}
	return sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ 0 });
}

static int timers(int n)
{
	timer_t timer;

	(void)n;
	return timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_NONE }, &timer);
}

static int locks(int n)
{
	static int fd = -1;

	if (n == 0)
		fd = open("/locked", O_RDWR | O_CREAT, 0600);
	return fcntl(
	    fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * n, .l_len = 1 });
}

static int posix_queues(int n)
{
	struct mq_attr size = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
	mqd_t queue;

	snprintf(name, sizeof name, "/hog%d", n);
	queue = mq_open(name, O_CREAT | O_RDWR, 0600, &size);
	if (queue == (mqd_t)-1)
		return -1;
	for (int i = 0; i < 10; i++)
		mq_send(queue, mib, 8192, 0);
	return mq_close(queue);
}

static int shared(int n)
{
	int id = shmget(IPC_PRIVATE, MIB, 0600 | IPC_CREAT);
	char *at = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

	(void)n;
	if (at == (char *)-1)
		return -1;
	*at = 1;
	return shmdt(at);
}

static int files(int n)
{
	int fd = memfd_create("hog", 0);

	(void)n;
	return fd < 0 ? -1 : (int)write(fd, mib, 4096);
}

static int terminals(int n)
{
	(void)n;
	return open("/dev/ptmx", O_RDWR | O_NOCTTY);
}

static int watches(int n)
{
	static int watcher = -1;
	int fd, watch;

	if (n == 0 && (watcher = inotify_init1(IN_NONBLOCK)) < 0)
		return -1;
	snprintf(name, sizeof name, "/watched%d", n);
	if ((fd = open(name, O_CREAT | O_RDWR, 0600)) < 0)
		return -1;
	close(fd);
	watch = inotify_add_watch(watcher, name, IN_ALL_EVENTS);
	unlink(name);
	/* Unread events pile up. */
	return n < 20000 ? watch : -1;
}

static int nested(int n)
{
	static int last = -1;
	int next = epoll_create1(0);

	(void)n;
	if (next < 0 ||
	    (last >= 0 && epoll_ctl(next, EPOLL_CTL_ADD, last, &(struct epoll_event){ .events = EPOLLIN }) &&
		errno != EINVAL && errno != ELOOP))
		return -1;
	last = next;
	return 0;
}

static const struct {
	const char *name;
	int (*one)(int);
} kinds[] = {
	{ "semaphores", semaphores },
	{ "undo", undo },
	{ "messages", messages },
	{ "queued signals", queued },
	{ "timers", timers },
	{ "record locks", locks },
	{ "POSIX queues", posix_queues },
	{ "shared memory", shared },
	{ "memory files", files },
	{ "pseudoterminals", terminals },
	{ "inotify", watches },
	{ "nested epoll", nested },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++) {
		int n = 0;

		if (strcmp(kinds[i].name, argv[1]))
			continue;
		while (n < MOST && kinds[i].one(n) >= 0)
			n++;
		printf("%s: %d, then %s\n", argv[1], n, n < MOST ? strerror(errno) : "enough");
		fflush(stdout);
		/* It still can do what takes little. */
		return fork() == 0 ? 0 : wait(NULL) < 0;
	}
	return 2;
}
