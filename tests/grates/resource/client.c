/* Programs that use things up: `client WHAT [AMOUNT]`. Prints what it got. Here is what is neither
 * bytes nor memory. */
#include "client.h"

long amount = 1000;
const char *self;
char data[1 << 16];

void say(const char *what, long n)
{
	printf("%s %ld, errno %d\n", what, n, errno);
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

/* A message with more descriptors than there is room for: where it is sent, as those are open until
 * they are received, and in a child that has more of its own. */
static void received(void)
{
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { data, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int s[2], fds[8], n;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(2);
	m.msg_controllen = CMSG_SPACE(8 * sizeof(int));
	c->cmsg_len = CMSG_LEN(8 * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	memset(CMSG_DATA(c), 0, 8 * sizeof(int));
	n = (int)sendmsg(s[0], &m, 0);
	printf("sent %d, errno %d\n", n, errno);
	fflush(stdout);
	m.msg_controllen = CMSG_SPACE(4 * sizeof(int));
	c->cmsg_len = CMSG_LEN(4 * sizeof(int));
	if (sendmsg(s[0], &m, 0) != 1)
		exit(3);
	if (fork() != 0) {
		wait(NULL);
		return;
	}
	for (n = 0; n < 3; n++)
		if (dup(0) < 0)
			exit(5);
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
	/* Each child is too short to be noticed alone. */
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

/* A descriptor that is closed by exec does not count any more. */
static void hold(void)
{
	char byte;

	while (read(0, &byte, 1) > 0)
		;
}

/* Children that have closed by exec what they had of ours. */
static void fork_files(void)
{
	int held[2], ready[2], made = 0;
	char byte;

	if (pipe2(held, O_CLOEXEC))
		return;
	for (int i = 0; i < 30; i++)
		open(".", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 12; i++, made++) {
		pid_t pid;

		if (pipe2(ready, O_CLOEXEC) || (pid = fork()) < 0)
			break;
		if (!pid) {
			dup2(held[0], 0);
			execl(self, self, "hold", (char *)NULL);
			_exit(1);
		}
		close(ready[1]);
		while (read(ready[0], &byte, 1) > 0)
			;
		close(ready[0]);
	}
	say("children", made);
	close(held[1]);
	while (wait(NULL) > 0)
		;
}

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

static const struct test other_tests[] = {
	{ "cages", cages },
	{ "threads", threads },
	{ "files", files },
	{ "received", received },
	{ "race_files", race_files },
	{ "spin", spin },
	{ "bomb", bomb },
	{ "spin_and_end", spin_and_end },
	{ "exec_files", exec_files },
	{ "fork_files", fork_files },
	{ "hold", hold },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct test *const all[] = { byte_tests, memory_tests, other_tests };

	setvbuf(stdout, NULL, _IOLBF, 0);
	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "seven"))
		return 7;
	if (argc > 2 && !strcmp(argv[1], "beside"))
		beside(argv + 2);
	if (argc > 2)
		amount = atol(argv[2]);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const struct test *t = all[i]; argc > 1 && t->name; t++)
			if (!strcmp(argv[1], t->name))
				t->run();
	unlink(NAME);
	unlink(NAME "2");
	return 0;
}
