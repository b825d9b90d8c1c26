/* Programs to disturb: `client WHAT [N]`. Prints what its calls gave, in a form that tests can
 * compare. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME   "fault.tmp"
#define RACERS 16

static long times = 20;
static char data[4096];

static int make(void)
{
	return open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

/* One letter for each call: `.` did it, `!` failed with EIO, `?` else. */
static void letters(void)
{
	int fd = make();
	char line[1001];

	for (long i = 0; i < times; i++)
		line[i] = pwrite(fd, "x", 1, 0) == 1 ? '.' : errno == EIO ? '!' : '?';
	line[times] = 0;
	puts(line);
}

static void lengths(void)
{
	struct iovec iov[3] = { { data, 10 }, { data + 10, 0 }, { data + 10, 90 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 3 };
	int fd = make(), s[2], d[2], p[2];
	char got[100] = "";
	off_t at = 0;

	for (int i = 0; i < 100; i++)
		data[i] = (char)('!' + i % 90);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || socketpair(AF_UNIX, SOCK_DGRAM, 0, d) || pipe(p))
		exit(2);
	printf("write %zd ", write(fd, data, 100));
	printf("writev %zd ", writev(fd, iov, 3));
	printf("pwritev %zd ", pwritev(fd, iov, 3, 0));
	printf("pwrite %zd\n", pwrite(fd, data, 100, 0));
	printf("pread %zd ", pread(fd, got, 100, 0));
	iov[0].iov_base = got;
	iov[2].iov_base = got + 10;
	memset(got, 0, sizeof got);
	printf("preadv %zd %d ", preadv(fd, iov, 3, 0), !memcmp(got, data, 50) && !got[50]);
	printf("sendfile %zd\n", sendfile(p[1], fd, &at, 100));
	iov[0].iov_base = data;
	iov[2].iov_base = data + 10;
	printf("sendmsg %zd ", sendmsg(s[0], &m, 0));
	printf("send %zd ", send(s[0], data, 100, 0));
	printf("datagram %zd ", send(d[0], data, 100, 0));
	memset(got, 0, sizeof got);
	iov[0].iov_base = got;
	iov[2].iov_base = got + 10;
	printf("recvmsg %zd %d ", recvmsg(s[1], &m, 0), !memcmp(got, data, 50) && !got[50]);
	printf("one %zd\n", write(fd, data, 1));
}

static void paths(void)
{
	static const char *const names[] = { "secret/a", "./secret/../secret/a", "open/a", "secret/b" };
	struct stat st;
	int fd, dir;

	mkdir("secret", 0700);
	mkdir("open", 0700);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		fd = open(names[i], O_RDWR | O_CREAT, 0600);
		printf("%s %d", names[i], fd < 0 ? errno : 0);
		close(fd);
		printf(" %d\n", stat(names[i], &st) ? errno : 0);
	}
	dir = open("secret", O_RDONLY | O_DIRECTORY);
	fd = openat(dir, "a", O_RDWR);
	printf("openat %d\n", fd < 0 ? errno : 0);
	fd = open("open/../secret/b", O_RDWR);
	printf("fchmod %d\n", fchmod(fd, 0600) ? errno : 0);
	unlink("secret/a");
	unlink("secret/b");
	unlink("open/a");
	rmdir("secret");
	rmdir("open");
}

static void kinds(void)
{
	int fd = make(), s[2], p[2], null = open("/dev/null", O_WRONLY), inet = socket(AF_INET, SOCK_DGRAM, 0);

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || pipe(p))
		exit(2);
	printf("file %d pipe %d unix %d device %d inet %d\n", write(fd, "x", 1) == 1, write(p[1], "x", 1) == 1,
	    write(s[0], "x", 1) == 1, write(null, "x", 1) == 1, write(inet, "x", 1) == 1 || errno != EIO);
}

/* All racers together see so many failures; each tells its own. */
static void race(void)
{
	int results[2], sum = 0, bad;

	if (pipe(results))
		exit(2);
	for (int i = 0; i < RACERS; i++)
		if (!fork()) {
			char name[32];
			int fd;

			snprintf(name, sizeof name, NAME "%d", i);
			fd = open(name, O_WRONLY | O_CREAT, 0600);
			bad = 0;
			for (long j = 0; j < times; j++)
				bad += pwrite(fd, "x", 1, 0) != 1;
			unlink(name);
			bad |= i << 16;
			_exit(write(results[1], &bad, sizeof bad) != sizeof bad);
		}
	int each[RACERS] = { 0 };
	for (int i = 0; i < RACERS; i++) {
		if (read(results[0], &bad, sizeof bad) != sizeof bad)
			exit(3);
		each[bad >> 16] = bad & 0xffff;
		sum += bad & 0xffff;
	}
	while (wait(NULL) > 0)
		;
	printf("sum %d\n", sum);
	for (int i = 0; i < RACERS; i++)
		printf("%d ", each[i]);
	puts("");
}

static void alarmed(int sig)
{
	(void)sig;
}

static void late(void)
{
	struct sigaction sa = { .sa_handler = alarmed };
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	umask(022);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("late %d\n", (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= times);
	sigaction(SIGALRM, &sa, NULL);
	ualarm(20000, 20000);
	clock_gettime(CLOCK_MONOTONIC, &a);
	mkdir("none/none", 0700);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("interrupted %d\n", b.tv_sec - a.tv_sec < 5);
}

static void others(void)
{
	int fd = make();
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	printf("fork %d ", pid < 0 ? errno : 0);
	printf(
	    "mmap %d ", mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0);
	printf("close %d ", close(fd) ? errno : 0);
	printf("closed %d ", fcntl(fd, F_GETFD) < 0);
	printf("bad %d ", close(fd) ? errno : 0);
	printf("exec %d\n", execl("none", "none", (char *)NULL) ? errno : 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{ "letters", letters },
		{ "lengths", lengths },
		{ "paths", paths },
		{ "kinds", kinds },
		{ "race", race },
		{ "late", late },
		{ "others", others },
	};

	setvbuf(stdout, NULL, _IOFBF, 65536);
	if (argc > 2)
		times = atol(argv[2]);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name))
			all[i].run();
	unlink(NAME);
	return 0;
}
