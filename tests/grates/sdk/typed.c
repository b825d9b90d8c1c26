/* Runs behind typed_grate: every kind of argument reaches its handler as what it is, or fails as
 * Linux fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int failed;

#define SAME(what, wanted) \
	do { \
		errno = 0; \
		long long got_ = (what), wanted_ = (wanted); \
		if (got_ < 0 && errno) \
			got_ = -errno; \
		if (got_ != wanted_) { \
			printf("line %d: %s: %lld, not %lld\n", __LINE__, #what, got_, wanted_); \
			failed = 1; \
		} \
	} while (0)

static void paths(void)
{
	static char far[5000];
	struct stat st;
	int fd = openat(AT_FDCWD, "/tmp/typed-a", O_CREAT | O_RDWR | O_TRUNC, 0600);

	SAME(fd >= 0, 1);
	SAME(lstat("/tmp/typed-a", &st), 0);
	SAME(st.st_mode & 0777, 0700);
	SAME(openat(AT_FDCWD, "/tmp/secret", O_RDONLY), -EACCES);
	SAME(openat(AT_FDCWD, (char *)16, O_RDONLY), -EFAULT);
	SAME(openat(AT_FDCWD, NULL, O_RDONLY), -EFAULT);
	memset(far, 'x', sizeof far - 1);
	SAME(openat(AT_FDCWD, far, O_RDONLY), -ENAMETOOLONG);
	SAME(openat(fd, "relative", O_RDONLY), -ENOTDIR);
	SAME(rename("/tmp/typed-b", "/tmp/typed-a"), 0);
	SAME(access("/tmp/typed-b", F_OK), 0);
	SAME(setxattr("/tmp/typed-b", "user.mine", "1", 1, 0), -EOPNOTSUPP);
	SAME(setxattr("/tmp/typed-b", far, "1", 1, 0), -ERANGE);
	SAME(unlink("/tmp/typed-b"), 0);
	close(fd);
}

static void structs(void)
{
	struct timespec hour = { 3600, 0 }, wrong = { 0, 2000000000 }, times[2] = { { 5, 0 }, { 6, 0 } };
	struct sockaddr_un blocked = { AF_UNIX, "/blocked" }, other = { AF_UNIX, "/no-such" };
	char big[200] = { AF_UNIX };
	struct stat st;
	int s = socket(AF_UNIX, SOCK_STREAM, 0), fd;

	SAME(-clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, NULL), 0);
	SAME(-clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL), -EINVAL);
	SAME(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, 16, NULL), -EFAULT);
	SAME(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, NULL, NULL), -EFAULT);
	/* Nine bytes would be the name with its NUL: without it the handler must see where the name
	 * ends. */
	SAME(connect(s, (struct sockaddr *)&blocked, 2 + 8), -EPERM);
	SAME(connect(s, (struct sockaddr *)&other, sizeof other), -ENOENT);
	SAME(connect(s, (struct sockaddr *)big, sizeof big), -EINVAL);
	SAME(connect(s, (struct sockaddr *)big, -1), -EINVAL);
	SAME(connect(s, (struct sockaddr *)16, 16), -EFAULT);
	SAME(fsync(s), AF_UNIX);
	close(s);
	fd = open("/tmp/typed-t", O_CREAT | O_RDWR, 0600);
	SAME(syscall(SYS_utimensat, fd, NULL, times, 0), 0);
	SAME(lstat("/tmp/typed-t", &st), 0);
	SAME(st.st_atime, 1);
	SAME(st.st_mtime, 7);
	SAME(utimensat(AT_FDCWD, "/tmp/typed-t", NULL, 0), 0);
	SAME(lstat("/tmp/typed-t", &st), 0);
	SAME(st.st_mtime, 2);
	SAME(unlink("/tmp/typed-t"), 0);
	close(fd);
}

__attribute__((import_module("lind"), import_name("syscall"))) long long raw(int nr, unsigned long long a,
    unsigned long long b, unsigned long long c, unsigned long long d, unsigned long long e, unsigned long long f);

static void numbers(void)
{
	int fd = open("/tmp/typed-n", O_CREAT | O_RDWR, 0600), pair[2];
	struct stat st;
	char text[8] = "";

	SAME(lseek(fd, 0x500000000, SEEK_SET), 0x500000000);
	SAME(lseek(fd, -1, SEEK_SET), -EINVAL);
	SAME(geteuid() == 4294967294u, 1);
	SAME(fstat(fd, &st), -ETXTBSY);
	/* A size that does not fit 32 bits is not one that does after a cut. */
	SAME(raw(SYS_mmap, 0, 0x100001000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), -E2BIG);
	/* A descriptor with garbage above 32 bits is the descriptor, as on Linux. */
	SAME(raw(SYS_lseek, 0x700000000 | (unsigned)fd, 3, SEEK_SET, 0, 0, 0), 3);
	SAME(fsync(fd), 3);
	SAME((size_t)mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != (size_t)-1, 1);
	SAME(pipe(pair), 0);
	SAME(write(pair[1], "abC1", 4), 4);
	SAME(read(pair[0], text, 8), 4);
	SAME(strcmp(text, "ABC1"), 0);
	SAME(write(pair[1], "abC1", 4), 4);
	SAME(read(pair[0], (void *)16, 8), -EFAULT);
	SAME(unlink("/tmp/typed-n"), 0);
}

int main(void)
{
	paths();
	structs();
	numbers();
	return failed;
}
