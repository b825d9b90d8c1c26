/* Cancellation: deferred and asynchronous, in calls that block, with handlers to clean up, off and
 * on. */
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2], sockets[2];
static sem_t never, there;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_t sleeper;
static volatile int cleaned, order[8];

static void clean(void *what)
{
	order[cleaned++ & 7] = (int)(long)what;
}

static void unlock(void *mutex)
{
	cleaned++;
	pthread_mutex_unlock(mutex);
}

/* The call that each thread blocks in. */
static void in_read(void)
{
	char c;
	read(ends[0], &c, 1);
}
static void in_pause(void)
{
	pause();
}
static void in_nanosleep(void)
{
	nanosleep(&(struct timespec){ 1000, 0 }, NULL);
}
static void in_poll(void)
{
	poll(NULL, 0, -1);
}
static void in_select(void)
{
	select(0, NULL, NULL, NULL, NULL);
}
static void in_sem_wait(void)
{
	sem_wait(&never);
}
static void in_recv(void)
{
	char c;
	recv(sockets[0], &c, 1, 0);
}
static void in_join(void)
{
	pthread_join(sleeper, NULL);
}
static void in_sigsuspend(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigsuspend(&none);
}
static void in_sigwait(void)
{
	sigset_t usr;
	int sig;
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR2);
	sigwait(&usr, &sig);
}
static void in_waitpid(void)
{
	waitpid(-1, NULL, 0);
}
static void in_cond(void)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, &lock);
	pthread_cond_wait(&condition, &lock);
	pthread_cleanup_pop(1);
}
static void in_timedwait(void)
{
	struct timespec late;
	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += 1000;
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, &lock);
	pthread_cond_timedwait(&condition, &lock, &late);
	pthread_cleanup_pop(1);
}

static void *block(void *where)
{
	pthread_cleanup_push(clean, (void *)1);
	pthread_cleanup_push(clean, (void *)2);
	sem_post(&there);
	((void (*)(void))where)();
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

/* `late`: the thread has surely got there; else it may be on the way. */
static void cancelled(const char *name, void (*where)(void), int late)
{
	pthread_t thread;
	void *result = NULL;

	cleaned = 0;
	NEED(pthread_create(&thread, NULL, block, (void *)where) == 0);
	sem_wait(&there);
	if (late)
		usleep(10000);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	if (!CHECK(result == PTHREAD_CANCELED))
		printf("in %s\n", name);
	CHECK(cleaned >= 2);
	CHECK_EQ(pthread_mutex_trylock(&lock), 0);
	pthread_mutex_unlock(&lock);
}

static void *disabled(void *unused)
{
	int state, again;
	(void)unused;
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state), 0);
	CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
	sem_post(&there);
	sem_wait(&never);
	/* Asked to go by now, and still here. */
	pthread_testcancel();
	usleep(1000);
	cleaned = 50;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &again);
	CHECK_EQ(again, PTHREAD_CANCEL_DISABLE);
	pthread_testcancel();
	cleaned = 99;
	return NULL;
}

static void *spin(void *type)
{
	volatile unsigned long count = 0;
	pthread_cleanup_push(clean, (void *)7);
	pthread_setcanceltype((int)(long)type, NULL);
	sem_post(&there);
	for (;;)
		count++;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *leave(void *unused)
{
	(void)unused;
	pthread_cleanup_push(clean, (void *)3);
	pthread_exit((void *)5);
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_key_t key;

static void destroy(void *value)
{
	order[cleaned++ & 7] = (int)(long)value;
}

static void *with_key(void *unused)
{
	(void)unused;
	pthread_setspecific(key, (void *)9);
	pthread_cleanup_push(clean, (void *)4);
	sem_post(&there);
	pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static void *sleeps(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*where)(void);
	} blocking[] = {
		{ "read", in_read },
		{ "pause", in_pause },
		{ "nanosleep", in_nanosleep },
		{ "poll", in_poll },
		{ "select", in_select },
		{ "sem_wait", in_sem_wait },
		{ "recv", in_recv },
		{ "pthread_join", in_join },
		{ "sigsuspend", in_sigsuspend },
		{ "sigwait", in_sigwait },
		{ "waitpid", in_waitpid },
		{ "pthread_cond_wait", in_cond },
		{ "pthread_cond_timedwait", in_timedwait },
	};
	pthread_t thread;
	void *result;
	sigset_t usr;
	int child[2];
	pid_t pid;

	NEED(pipe(ends) == 0 && pipe(child) == 0);
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	NEED(sem_init(&never, 0, 0) == 0 && sem_init(&there, 0, 0) == 0);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr, NULL);
	/* Somebody to wait for. */
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		char c;
		close(child[1]);
		read(child[0], &c, 1);
		_exit(0);
	}
	NEED(pthread_create(&sleeper, NULL, sleeps, NULL) == 0);
	for (int late = 0; late < 2; late++)
		for (unsigned i = 0; i < sizeof blocking / sizeof *blocking; i++)
			cancelled(blocking[i].name, blocking[i].where, late);

	cleaned = 0;
	NEED(pthread_create(&thread, NULL, disabled, NULL) == 0);
	sem_wait(&there);
	CHECK_EQ(pthread_cancel(thread), 0);
	sem_post(&never);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 50);

	cleaned = 0;
	NEED(pthread_create(&thread, NULL, spin, (void *)PTHREAD_CANCEL_ASYNCHRONOUS) == 0);
	sem_wait(&there);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 1);
	CHECK_EQ(order[0], 7);

	cleaned = 0;
	NEED(pthread_create(&thread, NULL, leave, NULL) == 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK_EQ((long)result, 5);
	CHECK_EQ(cleaned, 1);

	/* Handlers first, then what belongs to keys. */
	cleaned = 0;
	NEED(pthread_key_create(&key, destroy) == 0);
	NEED(pthread_create(&thread, NULL, with_key, NULL) == 0);
	sem_wait(&there);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK_EQ(cleaned, 2);
	CHECK_EQ(order[0], 4);
	CHECK_EQ(order[1], 9);

	pthread_cancel(sleeper);
	CHECK_EQ(pthread_join(sleeper, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	close(child[1]);
	close(child[0]);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	return check_done();
}
