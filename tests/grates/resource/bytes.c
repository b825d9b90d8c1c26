/* Bytes read and written: to the limit, by every way, at a rate. */
#include "client.h"

static void write_all(void)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	long total = 0;
	ssize_t n;

	while ((n = write(fd, data, (size_t)amount)) > 0)
		total += n;
	say("wrote", total);
	errno = 0;
	say("size", (long)lseek(fd, 0, SEEK_END));
}

/* Every way to write, a byte or some at a time, until all of them fail. */
static void ways(void)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600), other = open(NAME "2", O_RDWR | O_CREAT | O_TRUNC, 0600),
	    p[2], s[2];
	struct iovec iov[3] = { { data, 3 }, { data, 0 }, { data + 7, 5 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 3 };
	struct mmsghdr mm[2] = { { .msg_hdr = m }, { .msg_hdr = m } };
	long total = 0, before = -1;
	ssize_t n;

	if (pipe(p) || socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(2);
	while (total != before) {
		off_t at = 0;

		before = total;
#define ADD(call) (n = (call), total += n > 0 ? n : 0)
		ADD(write(fd, data, 10));
		ADD(pwrite(fd, data, 11, 5));
		ADD(writev(fd, iov, 3));
		ADD(pwritev(fd, iov, 3, 100));
		ADD(write(p[1], data, 13));
		ADD(splice(p[0], NULL, fd, NULL, 13, 0));
		ADD(send(s[0], data, 17, 0));
		ADD(sendmsg(s[0], &m, 0));
		ADD(sendmmsg(s[0], mm, 2, 0));
		if (n > 0)
			total += 8 * n - n;
		ADD(sendfile(other, fd, &at, 19));
		at = 0;
		ADD(copy_file_range(fd, &at, other, NULL, 23, 0));
		if (recv(s[1], data, sizeof data, MSG_DONTWAIT) < 0 && errno != EAGAIN)
			exit(3);
	}
	say("ways", total);
}

static void read_all(void)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct iovec iov[2] = { { data, 100 }, { data + 100, 200 } };
	long total = 0;
	ssize_t n;

	if (ftruncate(fd, 1 << 20))
		exit(2);
	while ((n = read(fd, data, (size_t)amount)) > 0 && (total += n, (n = readv(fd, iov, 2)) > 0) &&
	    (total += n, (n = pread(fd, data, 1, 0)) > 0))
		total += n;
	say("read", total);
}

/* All racers write to files of their own; the sum is what the limit says. */
static void race_bytes(void)
{
	int results[2];
	long sum = 0, one;

	if (pipe(results))
		exit(2);
	for (int i = 0; i < RACERS; i++)
		if (!fork()) {
			char name[32];
			long total = 0;
			ssize_t n;
			int fd;

			snprintf(name, sizeof name, NAME "%d", i);
			fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
			while ((n = i % 2 ? write(fd, data, (size_t)(7 + i))
					  : writev(fd, &(struct iovec){ data, (size_t)(100 * i + 1) }, 1)) > 0)
				total += n;
			one = lseek(fd, 0, SEEK_END);
			unlink(name);
			if (one != total)
				_exit(1);
			if (errno != ENOSPC)
				_exit(2);
			/* Not a class that is limited. */
			_exit(write(results[1], &total, sizeof total) != sizeof total);
		}
	for (int i = 0; i < RACERS; i++) {
		if (read(results[0], &one, sizeof one) != sizeof one)
			exit(3);
		sum += one;
	}
	errno = 0;
	for (int status; wait(&status) > 0;)
		if (status)
			printf("status %x\n", status);
	printf("sum %ld\n", sum);
}

static void alarmed(int sig)
{
	(void)sig;
}

static long since(const struct timespec *from)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec - from->tv_sec) * 1000 + (t.tv_nsec - from->tv_nsec) / 1000000;
}

/* `amount` bytes in calls of 1000, from 4 cages: how long it takes. */
static void rate(void)
{
	struct timespec from;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			int fd = open("/dev/null", O_WRONLY);
			long n = 0;

			while (n < amount / 4) {
				ssize_t m = write(fd, data, 1000);

				if (m <= 0)
					_exit(1);
				n += m;
			}
			_exit(0);
		}
	for (int status; wait(&status) > 0;)
		if (status)
			printf("status %x\n", status);
	printf("%ld ms\n", since(&from));
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = alarmed };
	int fd = open("/dev/null", O_WRONLY);
	ssize_t n;

	/* A wait that no signal ended would go on for ever, turn after turn. */
	sigaction(SIGALRM, &sa, NULL);
	ualarm(200000, 50000);
	while ((n = write(fd, data, 1000)) > 0)
		;
	printf("%zd errno %d\n", n, errno);
}

/* A read that waits holds nothing that others want. */
static void waits(void)
{
	int p[2], fd = open("/dev/zero", O_RDONLY);
	long total = 0;
	ssize_t n;

	if (pipe(p))
		exit(2);
	if (!fork()) {
		close(p[1]);
		_exit(read(p[0], data, sizeof data) != 0);
	}
	usleep(100000);
	while ((n = read(fd, data, 1000)) > 0)
		total += n;
	say("read", total);
	close(p[1]);
	wait(NULL);
}

/* Messages of a POSIX queue: what is waited for holds nothing, and what is left of the limit is
 * what of the last one comes. */
static void queue(void)
{
	struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 200 };
	mqd_t q = mq_open("/resource.tmp", O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	struct timespec past = { 1, 0 };
	long total = 0;
	ssize_t n;

	mq_unlink("/resource.tmp");
	if (q < 0 || mq_send(q, data, 5, 0) || mq_receive(q, data, 200, NULL) != 5)
		exit(2);
	printf("late %d", (int)mq_timedreceive(q, data, 200, NULL, &past));
	printf(" errno %d\n", errno);
	if (!fork())
		_exit(mq_receive(q, data, 200, NULL) != 1);
	usleep(100000);
	for (int i = 0; i < 3; i++)
		mq_send(q, data, i ? 100 : 1, 9 - i);
	wait(NULL);
	while ((n = mq_receive(q, data, 200, NULL)) > 0 && mq_send(q, data, 100, 0) == 0)
		total += n;
	say("received", total);
}

struct note {
	long type;
	char text[1000];
};

/* The same of System V: who waits has room for all that is left. */
static void notes(void)
{
	int q = msgget(IPC_PRIVATE, 0600), fd = open("/dev/zero", O_RDONLY), status;
	struct note note = { .type = 2 };
	long total = 0;
	ssize_t n;
	pid_t pid;

	if (q < 0 || fd < 0)
		exit(2);
	if (!fork()) {
		struct note got;

		/* An empty one, one of a type, one that is cut, one that is too long, and then the queue is
		 * gone. */
		if (msgrcv(q, &got, 1000, 0, 0) != 0 || got.type != 2 || msgrcv(q, &got, 1000, 3, 0) != 5 ||
		    got.type != 3)
			_exit(1);
		if (msgrcv(q, &got, 2, -2, MSG_NOERROR) != 2 || msgrcv(q, &got, 2, 0, 0) >= 0 || errno != E2BIG ||
		    msgrcv(q, &got, 1000, 0, 0) != 3)
			_exit(2);
		_exit(msgrcv(q, &got, 1000, 0, 0) >= 0 || errno != EIDRM);
	}
	usleep(100000);
	while (total < 900 && (n = read(fd, data, 100)) > 0)
		total += n;
	printf("meanwhile %ld, ", total);
	msgsnd(q, &note, 0, 0);
	usleep(50000);
	msgsnd(q, &note, 4, 0);
	note.type = 3;
	msgsnd(q, &note, 5, 0);
	usleep(50000);
	msgsnd(q, &note, 3, 0);
	usleep(100000);
	msgctl(q, IPC_RMID, NULL);
	pid = wait(&status);
	while ((n = read(fd, data, 100)) > 0)
		total += n;
	printf("status %d, ", pid > 0 ? status : -1);
	say("read", total);
}

static void map_file(void)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600), n = 0;

	if (ftruncate(fd, 1 << 20))
		exit(2);
	while (mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		n++;
	say("mapped", n);
}

/* Lengths that change between a look at them and their use. */
static struct iovec moving = { data, 1 };
static volatile int done;

static void *move(void *unused)
{
	while (!done) {
		__atomic_store_n(&moving.iov_len, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&moving.iov_len, sizeof data, __ATOMIC_RELAXED);
	}
	return unused;
}

static void flip(void)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600), s[2];
	struct msghdr m = { .msg_iov = &moving, .msg_iovlen = 1 };
	pthread_t t;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(2);
	if (!fork()) {
		close(s[0]);
		while (read(s[1], data, sizeof data) > 0)
			;
		_exit(0);
	}
	pthread_create(&t, NULL, move, NULL);
	while (writev(fd, &moving, 1) > 0)
		;
	while (sendmsg(s[0], &m, 0) > 0)
		;
	done = 1;
	pthread_join(t, NULL);
	say("size", (long)lseek(fd, 0, SEEK_END));
	close(s[0]);
	wait(NULL);
}

const struct test byte_tests[] = {
	{ "write", write_all },
	{ "ways", ways },
	{ "read", read_all },
	{ "race_bytes", race_bytes },
	{ "rate", rate },
	{ "interrupted", interrupted },
	{ "waits", waits },
	{ "map_file", map_file },
	{ "queue", queue },
	{ "notes", notes },
	{ "flip", flip },
	{ NULL, NULL },
};
