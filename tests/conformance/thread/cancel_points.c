/*
 * Cancellation points: an earlier request acts at each of them, though none would block; a wait
 * with cancellation disabled, or in a call that is not a cancellation point, is not disturbed;
 * asynchronous cancellation acts when it is enabled; and a handler with SA_RESTART does not keep a
 * thread in a call.
 */
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

static int ends[2], sockets[2], file, epoll, queue;
static sem_t there, go_on, posted;
static char byte;
static struct iovec vector = { &byte, 1 };
static struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
static struct {
	long kind;
	char text[1];
} note = { 1, { 'x' } };

/* None of these would wait: there is a byte in the pipe and in the socket, room in both, and a
 * signal. */
static void with_accept(void)
{
	accept(-1, NULL, NULL);
}
static void with_nanosleep(void)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ 0, 1 }, NULL);
}
static void with_close(void)
{
	close(-1);
}
static void with_connect(void)
{
	connect(-1, NULL, 0);
}
static void with_creat(void)
{
	creat("/nowhere/at/all", 0600);
}
static void with_lock(void)
{
	fcntl(file, F_SETLKW, &(struct flock){ .l_type = F_RDLCK });
}
static void with_fdatasync(void)
{
	fdatasync(-1);
}
static void with_fsync(void)
{
	fsync(-1);
}
static void with_msgrcv(void)
{
	msgrcv(queue, &note, 1, 0, IPC_NOWAIT);
}
static void with_msgsnd(void)
{
	msgsnd(-1, &note, 1, IPC_NOWAIT);
}
static void with_msync(void)
{
	msync(NULL, 0, MS_SYNC);
}
static void with_open(void)
{
	open("/nowhere/at/all", O_RDONLY);
}
static void with_openat(void)
{
	openat(AT_FDCWD, "/nowhere/at/all", O_RDONLY);
}
static void with_poll(void)
{
	poll(NULL, 0, 0);
}
static void with_ppoll(void)
{
	ppoll(NULL, 0, &(struct timespec){ 0, 0 }, NULL);
}
static void with_pread(void)
{
	pread(file, &byte, 1, 0);
}
static void with_pwrite(void)
{
	pwrite(file, &byte, 1, 0);
}
static void with_pselect(void)
{
	pselect(0, NULL, NULL, NULL, &(struct timespec){ 0, 0 }, NULL);
}
static void with_testcancel(void)
{
	pthread_testcancel();
}
static void with_read(void)
{
	read(ends[0], &byte, 1);
}
static void with_readv(void)
{
	readv(ends[0], &vector, 1);
}
static void with_recv(void)
{
	recv(sockets[0], &byte, 1, MSG_DONTWAIT);
}
static void with_recvfrom(void)
{
	recvfrom(sockets[0], &byte, 1, MSG_DONTWAIT, NULL, NULL);
}
static void with_recvmsg(void)
{
	recvmsg(sockets[0], &message, MSG_DONTWAIT);
}
static void with_select(void)
{
	select(0, NULL, NULL, NULL, &(struct timeval){ 0, 0 });
}
static void with_sem_wait(void)
{
	sem_wait(&posted);
}
static void with_send(void)
{
	send(sockets[0], "x", 1, 0);
}
static void with_sendmsg(void)
{
	sendmsg(sockets[0], &message, 0);
}
static void with_sendto(void)
{
	sendto(sockets[0], "x", 1, 0, NULL, 0);
}
static void with_sigtimedwait(void)
{
	sigset_t usr;
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR2);
	sigtimedwait(&usr, NULL, &(struct timespec){ 0, 0 });
}
static void with_usleep(void)
{
	usleep(1);
}
static void with_waitpid(void)
{
	waitpid(-1, NULL, WNOHANG);
}
static void with_waitid(void)
{
	siginfo_t info;
	waitid(P_ALL, 0, &info, WEXITED | WNOHANG);
}
static void with_write(void)
{
	write(ends[1], "x", 1);
}
static void with_writev(void)
{
	writev(ends[1], &vector, 1);
}
static void with_epoll(void)
{
	struct epoll_event event;
	epoll_wait(epoll, &event, 1, 0);
}

#define POINT(name) { #name, with_##name }
static const struct {
	const char *name;
	void (*call)(void);
} points[] = {
	POINT(accept),
	POINT(nanosleep),
	POINT(close),
	POINT(connect),
	POINT(creat),
	POINT(lock),
	POINT(fdatasync),
	POINT(fsync),
	POINT(msgrcv),
	POINT(msgsnd),
	POINT(msync),
	POINT(open),
	POINT(openat),
	POINT(poll),
	POINT(ppoll),
	POINT(pread),
	POINT(pwrite),
	POINT(pselect),
	POINT(testcancel),
	POINT(read),
	POINT(readv),
	POINT(recv),
	POINT(recvfrom),
	POINT(recvmsg),
	POINT(select),
	POINT(sem_wait),
	POINT(send),
	POINT(sendmsg),
	POINT(sendto),
	POINT(sigtimedwait),
	POINT(usleep),
	POINT(waitpid),
	POINT(waitid),
	POINT(write),
	POINT(writev),
	POINT(epoll),
};

static void clean(void *counter)
{
	++*(int *)counter;
}

static int cleaned;

static void *asked(void *call)
{
	pthread_cleanup_push(clean, &cleaned);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sem_post(&there);
	sem_wait(&go_on);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	((void (*)(void))call)();
	pthread_cleanup_pop(0);
	return NULL;
}

static void at_each_point(void)
{
	for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
		pthread_t thread;
		void *result;

		cleaned = 0;
		NEED(pthread_create(&thread, NULL, asked, (void *)points[i].call) == 0);
		sem_wait(&there);
		CHECK_EQ(pthread_cancel(thread), 0);
		sem_post(&go_on);
		CHECK_EQ(pthread_join(thread, &result), 0);
		if (!CHECK(result == PTHREAD_CANCELED))
			printf("at %s\n", points[i].name);
		CHECK_EQ(cleaned, 1);
	}
}

static sem_t second;
static volatile int cancelled;
static int locked, second_lock, semaphores, own[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Each waits until main has cancelled the thread, and then for what main does. */
static int in_read(void)
{
	return read(own[0], &byte, 1) == 1;
}
static int in_poll(void)
{
	struct pollfd fd = { own[0], POLLIN, 0 };
	return poll(&fd, 1, -1) == 1 && read(own[0], &byte, 1) == 1;
}
static int in_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0), ready;
	epoll_ctl(set, EPOLL_CTL_ADD, own[0], &event);
	ready = epoll_wait(set, &event, 1, -1);
	close(set);
	return ready == 1 && read(own[0], &byte, 1) == 1;
}
static int in_sem_wait(void)
{
	return sem_wait(&second) == 0;
}
static int in_nanosleep(void)
{
	struct timespec rest = { 7, 7 };
	do
		if (nanosleep(&(struct timespec){ 0, 5000000 }, &rest))
			return 0;
	while (!cancelled);
	return rest.tv_sec == 7;
}
static int in_semop(void)
{
	return semop(semaphores, &(struct sembuf){ 0, -1, 0 }, 1) == 0;
}
static int in_flock(void)
{
	/* close is a cancellation point. */
	return flock(second_lock, LOCK_EX) == 0 && flock(second_lock, LOCK_UN) == 0;
}
static int in_mutex(void)
{
	return pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0;
}

static const struct {
	const char *name;
	int (*wait)(void);
	int point;
} waits[] = {
	{ "read", in_read, 1 },
	{ "poll", in_poll, 1 },
	{ "epoll_wait", in_epoll, 1 },
	{ "sem_wait", in_sem_wait, 1 },
	{ "nanosleep", in_nanosleep, 1 },
	{ "semop", in_semop, 0 },
	{ "flock", in_flock, 0 },
	{ "mutex", in_mutex, 0 },
};

static int undisturbed;

static void *waiting(void *which)
{
	unsigned i = (unsigned)(long)which;

	if (waits[i].point)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sem_post(&there);
	undisturbed = waits[i].wait();
	if (!undisturbed)
		printf("%s: errno %d\n", waits[i].name, errno);
	pthread_testcancel();
	undisturbed |= waits[i].point ? 2 : 4;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	undisturbed |= 4;
	return NULL;
}

static void not_disturbed(void)
{
	for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
		pthread_t thread;
		void *result;

		cancelled = 0;
		NEED(flock(locked, LOCK_EX) == 0 && pthread_mutex_lock(&mutex) == 0);
		NEED(pthread_create(&thread, NULL, waiting, (void *)(long)i) == 0);
		sem_wait(&there);
		usleep(3000);
		CHECK_EQ(pthread_cancel(thread), 0);
		cancelled = 1;
		usleep(3000);
		flock(locked, LOCK_UN);
		pthread_mutex_unlock(&mutex);
		CHECK_EQ(write(own[1], "x", 1), 1);
		sem_post(&second);
		CHECK_EQ(semop(semaphores, &(struct sembuf){ 0, 1, 0 }, 1), 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK(result == PTHREAD_CANCELED);
		if (!CHECK_EQ(undisturbed, waits[i].point ? 3 : 1))
			printf("in %s\n", waits[i].name);
		/* The posts that this one did not take. */
		while (sem_trywait(&second) == 0)
			;
		semctl(semaphores, 0, SETVAL, 0);
		fcntl(own[0], F_SETFL, O_NONBLOCK);
		while (read(own[0], &byte, 1) == 1)
			;
		fcntl(own[0], F_SETFL, 0);
	}
}

static volatile int turns;

static void *asynchronous(void *unused)
{
	int before;

	pthread_cleanup_push(clean, &cleaned);
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before), 0);
	CHECK_EQ(before, PTHREAD_CANCEL_DEFERRED);
	sem_post(&there);
	sem_wait(&go_on);
	turns = 1;
	/* There is nothing to wait for: it acts here. */
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	turns = 2;
	pthread_cleanup_pop(0);
	return unused;
}

static void *itself(void *unused)
{
	pthread_cleanup_push(clean, &cleaned);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	turns = 3;
	pthread_cancel(pthread_self());
	turns = 4;
	pthread_cleanup_pop(0);
	return unused;
}

static void when_enabled(void)
{
	pthread_t thread;
	void *result;

	cleaned = 0;
	NEED(pthread_create(&thread, NULL, asynchronous, NULL) == 0);
	sem_wait(&there);
	CHECK_EQ(pthread_cancel(thread), 0);
	sem_post(&go_on);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(turns, 1);
	NEED(pthread_create(&thread, NULL, itself, NULL) == 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(turns, 3);
	CHECK_EQ(cleaned, 2);
}

static void nothing(int sig)
{
	(void)sig;
}

static void *reads(void *unused)
{
	sem_post(&there);
	while (read(own[0], &byte, 1) == 1 || errno == EINTR)
		;
	return unused;
}

/* Both signals come at one time: the one with SA_RESTART must not bring the thread back into its
 * call for good. */
static void with_restart(void)
{
	struct sigaction restart = { .sa_handler = nothing, .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGUSR1, &restart, NULL), 0);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *result;

		NEED(pthread_create(&thread, NULL, reads, NULL) == 0);
		sem_wait(&there);
		if (i & 1)
			usleep(100);
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK(result == PTHREAD_CANCELED);
	}
}

int main(void)
{
	sigset_t usr;

	NEED(pipe(ends) == 0 && pipe(own) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	NEED(write(ends[1], "x", 1) == 1 && write(sockets[1], "x", 1) == 1);
	NEED((file = open("file", O_RDWR | O_CREAT | O_EXCL, 0600)) >= 0);
	NEED((locked = open("lock", O_RDWR | O_CREAT | O_EXCL, 0600)) >= 0);
	NEED((second_lock = open("lock", O_RDWR)) >= 0);
	NEED((epoll = epoll_create1(0)) >= 0 && (queue = msgget(IPC_PRIVATE, 0600)) >= 0);
	NEED((semaphores = semget(IPC_PRIVATE, 1, 0600)) >= 0);
	NEED(sem_init(&there, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
	NEED(sem_init(&posted, 0, 1) == 0 && sem_init(&second, 0, 0) == 0);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr, NULL);
	at_each_point();
	not_disturbed();
	when_enabled();
	with_restart();
	CHECK_EQ(msgctl(queue, IPC_RMID, NULL) | semctl(semaphores, 0, IPC_RMID), 0);
	CHECK_EQ(unlink("file") | unlink("lock"), 0);
	return check_done();
}
