/* Programs that use things up: `client WHAT [AMOUNT]`. Prints what it got. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "resource.tmp"
#define RACERS 16

static long amount = 1000;
static const char *self;
static char data[1 << 16];

static void say(const char *what, long n)
{
	printf("%s %ld, errno %d\n", what, n, errno);
}

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
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600), other = open(NAME "2", O_RDWR | O_CREAT | O_TRUNC, 0600), p[2], s[2];
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
	while ((n = read(fd, data, (size_t)amount)) > 0 && (total += n, (n = readv(fd, iov, 2)) > 0) && (total += n, (n = pread(fd, data, 1, 0)) > 0))
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
			while ((n = i % 2 ? write(fd, data, (size_t)(7 + i)) : writev(fd, &(struct iovec){ data, (size_t)(100 * i + 1) }, 1)) > 0)
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

static void map(void)
{
	long total = 0;

	while (mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		total += 65536;
	printf("mapped all but less than 64K more: %d, errno %d\n", total > 0, errno);
	printf("total %ld\n", total);
}

static void *map_some(void *unused)
{
	(void)unused;
	for (int i = 0; i < 200; i++) {
		char *p = mmap(NULL, 262144, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			continue;
		p[0] = 1;
		munmap(p, 131072);
		munmap(p + 131072, 131072);
	}
	return NULL;
}

static void race_memory(void)
{
	pthread_t t[4];
	long first = (long)(intptr_t)sbrk(0);

	for (int i = 0; i < 4; i++)
		if (!fork()) {
			for (int j = 0; j < 4; j++)
				pthread_create(&t[j], NULL, map_some, NULL);
			for (int j = 0; j < 4; j++)
				pthread_join(t[j], NULL);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	printf("brk kept: %d\n", (long)(intptr_t)sbrk(0) == first);
	map();
}

static void cages(void)
{
	int n = 1, go[2], status;
	char c;

	if (pipe(go))
		exit(2);
	for (pid_t pid; (pid = fork()) >= 0; n++)
		if (!pid) {
			close(go[1]);
			_exit(read(go[0], &c, 1) != 0);
		}
	say("cages", n);
	close(go[1]);
	while (wait(&status) > 0)
		;
	/* Places are free again. */
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (waitpid(pid, &status, 0) != pid || status)
			printf("fork %d\n", errno);
	}
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *stand(void *unused)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return unused;
}

static void threads(void)
{
	pthread_t t[100];

	for (int round = 0; round < 3; round++) {
		int n = 0;

		pthread_mutex_lock(&gate);
		while (n < 100 && (errno = pthread_create(&t[n], NULL, stand, NULL)) == 0)
			n++;
		say("threads", n + 1);
		pthread_mutex_unlock(&gate);
		for (int i = 0; i < n; i++)
			pthread_join(t[i], NULL);
		/* A thread is joined a moment before it is gone. */
		usleep(50000);
	}
}

static void files(void)
{
	int n = 3, fds[2], first = -1, fd;

	while ((fd = n % 3 == 0 ? dup(0) : n % 3 == 1 ? open(".", O_RDONLY) : fcntl(1, F_DUPFD, 0)) >= 0) {
		first = first < 0 ? fd : first;
		n++;
	}
	say("files", n);
	printf("pipe %d, ", pipe(fds));
	say("dup2", dup2(0, 500));
	errno = 0;
	printf("over %d\n", dup2(0, first));
	for (int i = 0; i < 4; i++)
		close(first + i);
	printf("pipe %d ", pipe(fds));
	printf("socketpair %d ", socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	say("dup", dup(0) >= 0);
	syscall(SYS_close_range, 3, ~0u, 0);
	printf("pipe %d\n", pipe(fds));
}

/* A message with more descriptors than there is room for. */
static void received(void)
{
	union { char bytes[CMSG_SPACE(8 * sizeof(int))]; struct cmsghdr align; } control;
	struct iovec iov = { data, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int s[2], fds[8], n;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(2);
	c->cmsg_len = CMSG_LEN(8 * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	memset(CMSG_DATA(c), 0, 8 * sizeof(int));
	if (sendmsg(s[0], &m, 0) != 1)
		exit(3);
	memset(&control, 0, sizeof control);
	m.msg_controllen = sizeof control;
	if (recvmsg(s[1], &m, 0) != 1)
		exit(4);
	c = CMSG_FIRSTHDR(&m);
	n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(c), (size_t)n * sizeof(int));
	printf("received %d, cut %d\n", n, !!(m.msg_flags & MSG_CTRUNC));
	say("dup", dup(0));
	for (int i = 0; i < n; i++)
		if (fcntl(fds[i], F_GETFD) < 0)
			puts("not open");
}

static void *open_and_close(void *unused)
{
	unsigned seed = (unsigned)(uintptr_t)&unused;

	for (int i = 0; i < 300; i++) {
		int fd = rand_r(&seed) % 3 ? dup(0) : dup2(0, 8 + rand_r(&seed) % 8);

		/* Also what is not ours. */
		close(rand_r(&seed) % 4 ? fd : 8 + rand_r(&seed) % 8);
	}
	return NULL;
}

/* Afterwards the count is still right. */
static void race_files(void)
{
	pthread_t t[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, open_and_close, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	syscall(SYS_close_range, 3, ~0u, 0);
	files();
}

static void spin(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

/* Everyone makes children, who do the same, and none ends or can be told to. */
static void bomb(void)
{
	for (int i = 1; i < 32; i++)
		signal(i, SIG_IGN);
	for (;;)
		if (fork() < 0)
			usleep(1000);
}

static void spin_and_end(void)
{
	/* Each too short to be noticed by itself. */
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			clock_t end = clock() + 2000;

			while (clock() < end)
				;
			raise(SIGKILL);
		}
		waitpid(pid, NULL, 0);
	}
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

static void segment(void)
{
	int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600), other = shmget(IPC_PRIVATE, 8 << 20, IPC_CREAT | 0600);

	printf("segments %d %d errno %d\n", id >= 0, other >= 0, errno);
	shmctl(id, IPC_RMID, NULL);
	shmctl(other, IPC_RMID, NULL);
	printf("memfd %d errno %d\n", memfd_create("x", 0), errno);
	/* Memory with a name, by every way to it. */
	errno = 0;
	printf("shm %d %d", shm_open("/x", O_RDWR | O_CREAT, 0600), errno);
	if (symlink("/dev/shm", "shm") || chdir("/dev/shm"))
		exit(2);
	errno = 0;
	printf(" relative %d %d", open("x", O_RDWR | O_CREAT, 0600), errno);
	if (chdir("/grates-test"))
		exit(2);
	errno = 0;
	printf(" link %d %d", open("shm/x", O_WRONLY | O_CREAT, 0600), errno);
	unlink("shm");
	errno = 0;
	printf(" creat %d %d", creat("/proc/self/root/dev/shm/x", 0600), errno);
	printf(" openat2 %d %d", (int)syscall(SYS_openat2, AT_FDCWD, "/dev/shm/x", &(uint64_t[3]) { O_RDWR | O_CREAT, 0600 }, 24), errno);
	errno = 0;
	printf(" there %d", access("/dev/shm/x", F_OK));
	/* One of somebody else's, opened for reading. */
	int fd = open("/dev/shm/y", O_RDONLY);
	char name[40];

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	errno = 0;
	printf(" again %d %d", fd < 0 ? -2 : open(name, O_RDWR), errno);
	errno = 0;
	printf(" truncate %d %d\n", truncate("/dev/shm/y", 1 << 20), errno);
	printf("file %d\n", open(NAME, O_RDWR | O_CREAT, 0600) >= 0);
}

/* Memory with a name and without: what it grows by counts, by every way to make it grow, and no more when it is gone. */
static void named(void)
{
	struct iovec three[3] = { { data, 3 }, { data, 65536 }, { data, 5 } };
	sem_t *sem = sem_open("/s", O_CREAT | O_EXCL, 0600, 1);
	int fd = shm_open("/x", O_RDWR | O_CREAT | O_EXCL, 0600), other, m;
	volatile char *a, *b;

	printf("semaphore %d %d %d\n", sem != SEM_FAILED, sem != SEM_FAILED && !sem_wait(sem) && !sem_post(sem), sem_unlink("/s"));
	printf("memory %d %d\n", ftruncate(fd, 4 << 20), (other = shm_open("/x", O_RDWR, 0)) >= 0);
	a = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	a[5] = 'x';
	printf("shared %d\n", b[5] == 'x');
	errno = 0;
	printf("too much %d %d", ftruncate(fd, 100 << 20), errno);
	printf(" %d", (int)pwrite(other, data, 100, 99 << 20));
	printf(" %d", (int)pwritev(fd, three, 3, 99 << 20));
	printf(" %d", fallocate(fd, 0, 98 << 20, 4096));
	printf(" %d", lseek(fd, 99 << 20, SEEK_SET) < 0 ? -2 : (int)write(fd, data, 1));
	m = memfd_create("m", 0);
	printf(" %d %d\n", m >= 0, ftruncate(m, 20 << 20));
	printf("enough %d %d\n", ftruncate(fd, 1 << 20), (int)pwritev(m, three, 3, 0) == 65544);
	shm_unlink("/x");
	for (int i = 0, status; i < 10; i++) {
		if (!fork()) {
			int own = i & 1 ? memfd_create("m", 0) : shm_open("/y", O_RDWR | O_CREAT, 0600), r = ftruncate(own, 4 << 20);

			shm_unlink("/y");
			_exit(r != 0);
		}
		wait(&status);
		printf("%d", status);
	}
	printf("\n");
}

/* Each makes memory files and makes them grow until there is no more; all hold what they have until the last is done. */
static void race_named(void)
{
	int results[2], stay[2];
	long sum = 0, one;

	if (pipe(results) || pipe(stay))
		exit(2);
	for (int i = 0; i < RACERS; i++)
		if (!fork()) {
			int fd = memfd_create("m", 0);

			close(stay[1]);
			for (one = 0; i & 1 ? !ftruncate(fd, one + 4096) : pwrite(fd, data, 4096, one) == 4096; one += 4096)
				;
			if (write(results[1], &one, sizeof one) != sizeof one || read(stay[0], data, 1))
				_exit(1);
			_exit(0);
		}
	for (int i = 0; i < RACERS; i++, sum += one)
		if (read(results[0], &one, sizeof one) != sizeof one)
			exit(3);
	close(stay[1]);
	while (wait(NULL) > 0)
		;
	printf("sum %ld\n", sum);
}

/* A number that is now a memory file's and now /dev/null's: what is written to it may be too much for the limit. */
static int turned, memory, null;
static volatile int turned_enough;

static void *turns(void *unused)
{
	while (!turned_enough) {
		dup2(memory, turned);
		dup2(null, turned);
	}
	return unused;
}

static void turning_named(void)
{
	struct stat st = { 0 };
	pthread_t t;

	memory = memfd_create("m", 0);
	null = open("/dev/null", O_WRONLY);
	turned = dup(null);
	pthread_create(&t, NULL, turns, NULL);
	for (int i = 0; i < 4000; i++)
		(void)!pwrite(turned, data, 65536, (off_t)i << 16);
	turned_enough = 1;
	pthread_join(t, NULL);
	fstat(memory, &st);
	printf("grown %d, too far %d\n", st.st_size > 0, st.st_size > 52 << 20);
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

/* Messages of a POSIX queue: what is waited for holds nothing, and what is left of the limit is what of the last one comes. */
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

/* A copy of what is mapped counts; memory that is only lent until exec does not. */
static void fork_memory(void)
{
	char *p = mmap(NULL, 30 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	printf("mapped %d\n", p != MAP_FAILED);
	pid = fork();
	if (!pid)
		_exit(0);
	say("fork", pid < 0 ? -1 : 0);
	for (int i = 0; i < 5; i++) {
		char *argv[] = { (char *)self, "seven", NULL };
		int status = 0;

		errno = posix_spawn(&pid, self, NULL, NULL, argv, NULL);
		waitpid(pid, &status, 0);
		printf("status %d errno %d\n", WEXITSTATUS(status), errno);
	}
	munmap(p, 30 << 20);
	pid = fork();
	if (!pid)
		_exit(0);
	printf("fork %d\n", pid < 0 ? -1 : 0);
	wait(NULL);
}

/* What is closed by exec counts no more. */
static void exec_files(void)
{
	char times[16];
	int n = 0;

	while (open(".", O_RDONLY | O_CLOEXEC) >= 0)
		n++;
	printf("%ld: %d\n", amount, n);
	if (amount) {
		snprintf(times, sizeof times, "%ld", amount - 1);
		execl(self, self, "exec_files", times, (char *)NULL);
	}
}

/* Makes memory with a name, and runs what follows. */
static void beside(char **argv)
{
	if (shm_open("/y", O_RDWR | O_CREAT, 0600) < 0)
		exit(2);
	execv(argv[0], argv);
	exit(3);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } all[] = {
		{ "write", write_all }, { "ways", ways }, { "read", read_all }, { "race_bytes", race_bytes }, { "map", map },
		{ "race_memory", race_memory }, { "cages", cages }, { "threads", threads }, { "files", files }, { "received", received },
		{ "race_files", race_files }, { "spin", spin }, { "bomb", bomb }, { "spin_and_end", spin_and_end }, { "rate", rate },
		{ "interrupted", interrupted }, { "segment", segment }, { "waits", waits }, { "map_file", map_file }, { "named", named }, { "race_named", race_named }, { "turning_named", turning_named }, { "queue", queue },
		{ "flip", flip }, { "fork_memory", fork_memory }, { "exec_files", exec_files },
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "seven"))
		return 7;
	if (argc > 2 && !strcmp(argv[1], "beside"))
		beside(argv + 2);
	if (argc > 2)
		amount = atol(argv[2]);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name))
			all[i].run();
	unlink(NAME);
	unlink(NAME "2");
	return 0;
}
