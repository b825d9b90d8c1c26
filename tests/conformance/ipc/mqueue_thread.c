/* mq_notify by SIGEV_THREAD: the function runs in a thread of its own, once for each registration,
 * with its value. */
#include "../check.h"
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[64], buffer[64];
static mqd_t queue;
static sem_t called;
static int values;
static pthread_t caller, first;

static void told(union sigval value)
{
	values += value.sival_int;
	caller = pthread_self();
	sem_post(&called);
}

/* It registers again before it empties the queue, as mq_notify(3) asks for. */
static void again(union sigval value)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD, .sigev_notify_function = told, .sigev_value.sival_int = 5
	};

	values += value.sival_int;
	CHECK_EQ(mq_notify(queue, &event), 0);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	sem_post(&called);
}

static void wait_called(void)
{
	while (sem_wait(&called))
		;
}

int main(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD, .sigev_notify_function = told, .sigev_value.sival_int = 7
	};
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	struct mq_attr attr = { .mq_maxmsg = 3, .mq_msgsize = 8 };
	pthread_attr_t stack;
	int status, i;
	mqd_t other;
	pid_t pid;

	snprintf(name, sizeof name, "/check-thread-%d", (int)getpid());
	NEED(sem_init(&called, 0, 0) == 0);
	first = pthread_self();
	queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	NEED(queue != (mqd_t)-1);
	other = mq_open(name, O_RDWR);
	NEED(other != (mqd_t)-1);

	/* By another process' message. */
	CHECK_EQ(mq_notify(queue, &event), 0);
	CHECK_ERRNO(mq_notify(other, &event), EBUSY);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		_exit(mq_send(queue, "a", 1, 0) != 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	wait_called();
	CHECK_EQ(values, 7);
	CHECK(!pthread_equal(caller, first));
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);

	/* Once: the registration is gone, and another one may come. */
	CHECK_EQ(mq_send(other, "b", 1, 0), 0);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	CHECK_EQ(mq_notify(other, &none), 0);
	CHECK_EQ(mq_notify(other, NULL), 0);
	CHECK_EQ(values, 7);

	/* With attributes, and registered again by the function. */
	NEED(pthread_attr_init(&stack) == 0 && pthread_attr_setstacksize(&stack, 256 << 10) == 0);
	event.sigev_notify_attributes = &stack;
	event.sigev_notify_function = again;
	for (i = 0; i < 20; i++) {
		CHECK_EQ(mq_notify(queue, &event), 0);
		CHECK_EQ(mq_send(other, "c", 1, 0), 0);
		wait_called();
		CHECK_EQ(mq_send(other, "d", 1, 0), 0);
		wait_called();
		CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	}
	CHECK_EQ(values, 7 + 20 * 12);

	/* Taken back, and gone with the descriptor: nobody is called, and others may register. */
	CHECK_EQ(mq_notify(queue, &event), 0);
	CHECK_EQ(mq_notify(queue, NULL), 0);
	CHECK_EQ(mq_send(other, "e", 1, 0), 0);
	CHECK_EQ(mq_receive(other, buffer, sizeof buffer, 0), 1);
	CHECK_EQ(mq_notify(queue, &event), 0);
	CHECK_EQ(mq_close(queue), 0);
	CHECK_EQ(mq_notify(other, &none), 0);
	CHECK_EQ(mq_send(other, "f", 1, 0), 0);
	CHECK_EQ(values, 7 + 20 * 12);
	CHECK_ERRNO(mq_notify(queue, &event), EBADF);
	CHECK_EQ(mq_unlink(name), 0);
	CHECK_EQ(mq_close(other), 0);
	pthread_attr_destroy(&stack);
	return check_done();
}
