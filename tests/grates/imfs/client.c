/*
 * Tests what a program sees of imfs beyond the conformance tests: `client WHAT [ARGS]`. Prints
 * nothing and exits with 0 if all is as it should be.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define CHECK(x) \
	((x) ? (void)0 \
	     : (failures++, \
		   (void)printf("%s:%d: %s (errno %d %s)\n", __FILE__, __LINE__, #x, errno, strerror(errno))))

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int holds(const char *path, const char *text)
{
	char buffer[256];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, buffer, sizeof buffer);

	close(fd);
	return n == (ssize_t)strlen(text) && !memcmp(buffer, text, (size_t)n);
}

static void map(void)
{
	size_t size = 200000;
	int fd = open("m", O_RDWR | O_CREAT, 0600);
	char *private, *shared, c = 0;

	for (size_t i = 0; i < size; i += 8)
		CHECK(pwrite(fd, "mapped.\n", 8, (off_t)i) == 8);
	private = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(private != MAP_FAILED && shared != MAP_FAILED);
	CHECK(!memcmp(private, shared, size) && private[size - 1] == '\n' && private[131072] == 'm');
	private[5] = '!';
	shared[100000] = '?';
	CHECK(pread(fd, &c, 1, 5) == 1 && c == 'd');
	CHECK(!msync(shared, size, MS_SYNC));
	CHECK(pread(fd, &c, 1, 100000) == 1 && c == '?');
	shared[100001] = '#';
	CHECK(!munmap(shared, size) && !munmap(private, size));
	CHECK(pread(fd, &c, 1, 100001) == 1 && c == '#');
	private = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 65536);
	CHECK(private != MAP_FAILED && private[0] == 'm');
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 1) == MAP_FAILED && errno == EINVAL);
	close(fd);
	fd = open("m", O_RDONLY);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
	close(fd);
	unlink("m");
}

/* A shared mapping is one memory: of two mappings, of the file, and of a child; as the file grows
 * and shrinks, and when it has no name. */
static void shared(void)
{
	int fd = open("m", O_RDWR | O_CREAT, 0600), reader = open("m", O_RDONLY), status;
	volatile char *a, *b;
	char text[8] = { 0 };
	pid_t child;

	CHECK(pwrite(fd, "first", 5, 0) == 5 && !ftruncate(fd, 4096));
	a = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	b = mmap(NULL, 4096, PROT_READ, MAP_SHARED, reader, 0);
	CHECK(a != MAP_FAILED && b != MAP_FAILED && a[0] == 'f' && b[4] == 't');
	CHECK(mprotect((void *)b, 4096, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
	a[0] = 'F';
	CHECK(b[0] == 'F' && pread(reader, text, 5, 0) == 5 && !strcmp(text, "First"));
	CHECK(pwrite(fd, "S", 1, 1) == 1 && a[1] == 'S');
	if (!(child = fork())) {
		a[2] = 'C';
		_exit(b[2] != 'C');
	}
	CHECK(waitpid(child, &status, 0) == child && !status && a[2] == 'C');
	/* Grown far beyond what it was, so that it moves in the grate. */
	CHECK(pwrite(fd, "far", 3, 3 << 20) == 3 && !ftruncate(fd, 5 << 20) && a[8 * 4096 - 1] == 0);
	a[7 * 4096] = 'g';
	CHECK(pread(fd, text, 1, 7 * 4096) == 1 && text[0] == 'g' && pread(fd, text, 3, 3 << 20) == 3 &&
	    !memcmp(text, "far", 3));
	CHECK(!ftruncate(fd, 10) && !ftruncate(fd, 8 * 4096) && a[7 * 4096] == 0 && a[2] == 'C');
	CHECK(!unlink("m") && !close(fd) && !close(reader));
	a[3] = 'U';
	CHECK(b[3] == 'U');
	CHECK(!munmap((void *)a, 8 * 4096) && b[3] == 'U' && !munmap((void *)b, 4096));
}

static void ready(void)
{
	int fd = open("r", O_RDWR | O_CREAT, 0600), e = epoll_create1(0);
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	struct epoll_event event = { EPOLLIN, { .u64 = 7 } };
	fd_set set;

	CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLOUT));
	FD_ZERO(&set);
	FD_SET(fd, &set);
	CHECK(select(fd + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(fd, &set));
	CHECK(epoll_ctl(e, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EPERM);
	close(e);
	close(fd);
	unlink("r");
}

/* A descriptor that arrives in a message is the file that was sent, and changes to it do not show
 * at descriptors of other files. */
static void sent(void)
{
	int ends[2], fd = open("s", O_RDWR | O_CREAT, 0600), other = open("t", O_RDWR | O_CREAT | O_NONBLOCK, 0600),
		     got;
	struct pollfd p = { other, POLLIN | POLLOUT, 0 };
	char control[CMSG_SPACE(sizeof fd)] = { 0 }, bytes[8] = "secrets";
	struct iovec byte = { bytes, 1 };
	struct msghdr m = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	CHECK(write(fd, bytes, 8) == 8 && !socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	CHECK(sendmsg(ends[0], &m, 0) == 1 && recvmsg(ends[1], &m, 0) == 1);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	CHECK(got != fd && pread(got, bytes, 8, 0) == 8 && pwrite(got, "S", 1, 0) == 1);
	CHECK(!ftruncate(got, 7) && !fchmod(got, 0400));
	CHECK(!fcntl(got, F_SETFL, O_APPEND) && fcntl(fd, F_GETFL) & O_APPEND);
	CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLOUT));
	CHECK(fcntl(other, F_GETFL) & O_NONBLOCK && !(fcntl(other, F_GETFL) & O_APPEND));
	CHECK(!close(got) && pread(fd, bytes, 8, 0) == 7 && !strcmp(bytes, "Secrets"));
	close(ends[0]);
	close(ends[1]);
	close(fd);
	close(other);
	unlink("s");
	unlink("t");
}

/* The limit is the kernel's, and a number that is closed is free. */
static void limit(void)
{
	struct rlimit before, few = { 16, 16 };
	int fds[16], n = 0;

	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	few.rlim_max = before.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	while (n < 16 && (fds[n] = open("l", O_RDWR | O_CREAT, 0600)) >= 0)
		n++;
	CHECK(n > 0 && n < 16 && errno == EMFILE && fds[n - 1] == 15);
	CHECK(!close(fds[n / 2]) && open("l", O_RDONLY) == fds[n / 2]);
	while (n--)
		CHECK(!close(fds[n]));
	CHECK(!setrlimit(RLIMIT_NOFILE, &before) && !unlink("l"));
}

/* Numbers are shared with files that are not ours. */
static void numbers(void)
{
	int pipes[2], a = open("a", O_RDWR | O_CREAT, 0600), b, c;
	char byte;

	CHECK(!pipe(pipes) && pipes[0] == a + 1);
	b = open("b", O_RDWR | O_CREAT, 0600);
	CHECK(b == a + 3);
	CHECK(write(b, "b", 1) == 1 && write(pipes[1], "p", 1) == 1 && write(a, "a", 1) == 1);
	CHECK(read(pipes[0], &byte, 1) == 1 && byte == 'p');
	CHECK(dup2(b, pipes[0]) == pipes[0] && pread(pipes[0], &byte, 1, 0) == 1 && byte == 'b');
	CHECK(lseek(pipes[0], 0, SEEK_CUR) == 1 && lseek(b, 5, SEEK_SET) == 5 && lseek(pipes[0], 0, SEEK_CUR) == 5);
	CHECK(dup2(pipes[1], b) == b && pread(b, &byte, 1, 0) < 0 && errno == ESPIPE);
	c = fcntl(a, F_DUPFD_CLOEXEC, 100);
	CHECK(c == 100 && fcntl(c, F_GETFD) == FD_CLOEXEC && pread(c, &byte, 1, 0) == 1 && byte == 'a');
	CHECK(!close(a) && pread(a, &byte, 1, 0) < 0 && errno == EBADF && pread(c, &byte, 1, 0) == 1);
	CHECK(!syscall(SYS_close_range, c, 200, 0) && read(c, &byte, 1) < 0 && errno == EBADF);
	for (int fd = 3; fd < 20; fd++)
		close(fd);
	unlink("a");
	unlink("b");
}

static void removed_but_open(void)
{
	int fd = open("gone", O_RDWR | O_CREAT, 0600);
	char buffer[8];
	struct stat st;

	CHECK(write(fd, "still", 5) == 5 && !unlink("gone") && access("gone", F_OK) < 0);
	CHECK(pread(fd, buffer, 8, 0) == 5 && !memcmp(buffer, "still", 5) && !fstat(fd, &st) && st.st_nlink == 0);
	close(fd);
}

static void big_copies(void)
{
	size_t size = 3 << 20;
	char *from = malloc(size), *to = malloc(size);
	int a = open("big", O_RDWR | O_CREAT, 0600), b = open("big2", O_RDWR | O_CREAT, 0600), p[2];
	off_t off = 0, off2 = 0;

	for (size_t i = 0; i < size; i++)
		from[i] = (char)(i * 2654435761u >> 13);
	CHECK(pwrite(a, from, size, 3) == (ssize_t)size && pread(a, to, size, 3) == (ssize_t)size &&
	    !memcmp(from, to, size));
	CHECK(sendfile(b, a, &off, size + 10) == (ssize_t)size + 3 && off == (off_t)size + 3);
	CHECK(pread(b, to, size, 3) == (ssize_t)size && !memcmp(from, to, size));
	off = 3;
	CHECK(copy_file_range(a, &off, b, &off2, 1000, 0) == 1000 && pread(b, to, 1000, 0) == 1000 &&
	    !memcmp(from, to, 1000));
	CHECK(!pipe(p) && (off = 3, sendfile(p[1], a, &off, 4096)) == 4096 && read(p[0], to, 4096) == 4096 &&
	    !memcmp(from, to, 4096));
	close(a);
	close(b);
	unlink("big");
	unlink("big2");
}

/* Descriptors in /proc, by number, by process and relative to the directory itself; what is gone
 * has no name there. */
static void proc(void)
{
	char name[64], text[64];
	int fd = open("listed", O_RDWR | O_CREAT, 0600), dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY), again;
	ssize_t n;

	CHECK(fd >= 0 && dir >= 0 && write(fd, "listed", 6) == 6);
	sprintf(name, "%d", fd);
	CHECK((again = openat(dir, name, O_RDONLY)) >= 0 && read(again, text, 8) == 6 && !memcmp(text, "listed", 6));
	close(again);
	CHECK((n = readlinkat(dir, name, text, sizeof text)) > 6 && !memcmp(text + n - 7, "/listed", 7));
	sprintf(name, "/proc/%d/fd/%d", (int)getpid(), fd);
	CHECK(!unlink("listed") && (again = open(name, O_WRONLY | O_APPEND)) >= 0 && write(again, "+", 1) == 1);
	CHECK(pread(fd, text, 8, 0) == 7 && text[6] == '+');
	CHECK((n = readlink(name, text, sizeof text)) > 10 && !memcmp(text, "imfs:[", 6) &&
	    !memcmp(text + n - 10, " (deleted)", 10));
	CHECK(linkat(AT_FDCWD, name, AT_FDCWD, "again", AT_SYMLINK_FOLLOW) < 0 && errno == ENOENT);
	close(again);
	close(dir);
	close(fd);
	CHECK(open(name, O_RDONLY) < 0 && errno == ENOENT);
}

static void bad_memory(void)
{
	int fd = open("bad", O_RDWR | O_CREAT, 0600);
	char *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), c = 1;

	memset(hole, 'x', 4096);
	munmap(hole + 4096, 4096);
	CHECK(pwrite(fd, hole, 8192, 0) < 8192);
	CHECK(!ftruncate(fd, 8192));
	CHECK(pread(fd, &c, 1, 5000) == 1 && c == 0);
	CHECK(pread(fd, (char *)16, 100, 0) < 0 && errno == EFAULT);
	CHECK(open((char *)16, O_RDONLY) < 0 && errno == EFAULT);
	CHECK(syscall(SYS_newfstatat, AT_FDCWD, "bad", 16L, 0) < 0 && errno == EFAULT);
	CHECK(pwrite(fd, (char *)16, 100, 8192) < 0 && errno == EFAULT && lseek(fd, 0, SEEK_END) == 8192);
	close(fd);
	unlink("bad");
}

static void all(void)
{
	map();
	shared();
	ready();
	sent();
	limit();
	numbers();
	removed_but_open();
	big_copies();
	proc();
	bad_memory();
}

static void full(void)
{
	static char block[1 << 16];
	int fd = open("full", O_RDWR | O_CREAT, 0600);
	struct statfs st;
	ssize_t n = 0;
	long long total = 0;

	CHECK(!statfs(".", &st) && st.f_blocks * 4096ull == 1 << 20 && st.f_type == 0x01021994);
	while ((n = write(fd, block, sizeof block)) > 0)
		total += n;
	CHECK(n < 0 && errno == ENOSPC && total > 900000 && total <= 1 << 20);
	CHECK(!statfs(".", &st) && st.f_bfree < 20);
	CHECK(!ftruncate(fd, 0) && write(fd, block, sizeof block) == sizeof block);
	close(fd);
	CHECK(!unlink("full"));
}

/* Prefix /mnt/x, started in /: what is outside stays there. */
/* From a directory outside, which is not known by its number as ours are. */
static void prefix_from_outside(void)
{
	int root = open("/", O_PATH | O_DIRECTORY), fd, dir;

	CHECK((fd = openat(root, "mnt/x/made", O_CREAT | O_RDWR, 0644)) >= 0 && !close(fd) &&
	    !access("/mnt/x/made", F_OK));
	CHECK((dir = openat(root, "mnt/x", O_PATH | O_DIRECTORY)) >= 0 && !unlinkat(dir, "made", 0) &&
	    !mkdirat(root, "mnt/x/e", 0755));
	CHECK(!close(dir) && !rmdir("/mnt/x/e") && !close(root));
}

static void prefix(void)
{
	char cwd[64];

	CHECK(!mkdir("/mnt/x/d", 0755));
	put("/mnt/x/d/f", "inside");
	CHECK(!chdir("/mnt/x/d") && getcwd(cwd, sizeof cwd) && !strcmp(cwd, "/mnt/x/d") && holds("f", "inside"));
	put("../../../outside.tmp", "outside");
	CHECK(holds("/outside.tmp", "outside") && holds("../../../outside.tmp", "outside"));
	CHECK(rename("f", "/f") < 0 && errno == EXDEV && link("/outside.tmp", "f2") < 0 && errno == EXDEV);
	CHECK(!symlink("/outside.tmp", "out") && holds("out", "outside"));
	CHECK(!chdir("/") && holds("mnt/x/d/f", "inside") && holds("mnt/../mnt/x/d/../d/f", "inside"));
	prefix_from_outside();
	CHECK(!unlink("outside.tmp") && !unlink("mnt/x/d/f") && !unlink("mnt/x/d/out") && !rmdir("mnt/x/d"));
}

static void loaded(void)
{
	struct stat st;

	CHECK(holds("/in/hello", "hello from outside\n") && !stat("/in/hello", &st) && (st.st_mode & 07777) == 0640);
	CHECK(holds("/in/deep/er", "deep\n") && holds("/in/link", "deep\n") && holds("/one", "deep\n"));
	CHECK(!mkdir("/out", 0755) && !mkdir("/out/d", 0700) && !symlink("d/f", "/out/l"));
	put("/out/d/f", "made inside");
	put("/out/mapped", "a");
	/* Never unmapped, and dumped all the same. */
	*(char *)mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, open("/out/mapped", O_RDWR), 0) = 'b';
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";

	if (!strcmp(what, "all"))
		all();
	else if (!strcmp(what, "full"))
		full();
	else if (!strcmp(what, "prefix"))
		prefix();
	else if (!strcmp(what, "loaded"))
		loaded();
	else
		return 2;
	return failures != 0;
}
