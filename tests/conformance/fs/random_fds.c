/* The descriptor table under 20,000 random operations: which numbers come back, what they name,
 * what closes on exec. */
#include "check.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#define FIRST 10
#define LAST  60
#define KINDS 4

/* Which file a number names (1 to KINDS; 0: closed), by inode, and its close-on-exec flag. */
static int names[LAST + 1], cloexec[LAST + 1];
static ino_t inodes[KINDS + 1];
static unsigned long long seed = 99;

static int below(int bound)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (int)((seed >> 33) % (unsigned)bound);
}

static int lowest(int from)
{
	while (from <= LAST && names[from])
		from++;
	return from;
}

static int set(int fd, int name, int flag)
{
	names[fd] = name;
	cloexec[fd] = name ? flag : 0;
	return 1;
}

static int copy(int fd, int from)
{
	int flag = below(2), want = lowest(from), got;

	if (want > LAST)
		return 1;
	got = fcntl(fd, flag ? F_DUPFD_CLOEXEC : F_DUPFD, from);
	if (!names[fd])
		return got == -1 && errno == EBADF;
	return got == want && set(want, names[fd], flag);
}

static int copy_to(int fd, int to)
{
	int flag = below(2), got;

	got = flag ? dup3(fd, to, O_CLOEXEC) : dup2(fd, to);
	if (fd == to && flag)
		return got == -1 && errno == EINVAL;
	if (!names[fd])
		return got == -1 && errno == EBADF;
	return got == to && (fd == to || set(to, names[fd], flag));
}

static int shut(int fd)
{
	int got = close(fd);

	if (!names[fd])
		return got == -1 && errno == EBADF;
	return got == 0 && set(fd, 0, 0);
}

static int shut_many(int from, int to)
{
	long flags = below(2) ? 4 : 0; /* CLOSE_RANGE_CLOEXEC */

	if (from > to)
		return syscall(SYS_close_range, (long)from, (long)to, flags) == -1 && errno == EINVAL;
	if (syscall(SYS_close_range, (long)from, (long)to, flags))
		return 0;
	for (int fd = from; fd <= to; fd++)
		if (flags && names[fd])
			cloexec[fd] = 1;
		else if (!flags)
			set(fd, 0, 0);
	return 1;
}

static int mark(int fd)
{
	int flag = below(2), got = fcntl(fd, F_SETFD, flag);

	if (!names[fd])
		return got == -1 && errno == EBADF;
	cloexec[fd] = flag;
	return got == 0;
}

static int agrees(void)
{
	for (int fd = FIRST; fd <= LAST; fd++) {
		struct stat st;

		if (fstat(fd, &st) ? names[fd] || errno != EBADF : st.st_ino != inodes[names[fd]])
			return 0;
		if (names[fd] && fcntl(fd, F_GETFD) != cloexec[fd])
			return 0;
	}
	return 1;
}

static int step(int keep)
{
	int fd = FIRST + below(LAST - FIRST + 1), other = FIRST + below(LAST - FIRST + 1);

	switch (below(12)) {
	case 0:
	case 1:
	case 2:
		return copy(fd, other);
	case 3:
	case 4:
	case 5:
		return copy_to(fd, other);
	case 6:
	case 7:
		return shut(fd);
	case 8:
		return below(10) ? 1 : shut_many(fd, other);
	case 9:
		return mark(fd);
	default:
		/* Something new to copy. */
		return dup2(keep, fd) == fd && set(fd, keep - 100 + 1, 0);
	}
}

int main(void)
{
	struct stat st;
	char name[] = "f0";

	for (int i = 0; i < KINDS; i++) {
		name[1] = (char)('0' + i);
		NEED(dup2(check_file(name, ""), 100 + i) == 100 + i && fstat(100 + i, &st) == 0);
		inodes[i + 1] = st.st_ino;
		CHECK_EQ(unlink(name), 0);
	}
	for (int fd = 3; fd <= LAST; fd++)
		close(fd);
	for (int i = 0; i < 20000; i++)
		if (!step(100 + below(KINDS)) || (i % 16 == 0 && !agrees())) {
			printf("operation %d (errno %d)\n", i, errno);
			NEED(!"the table is what the model says");
		}
	CHECK(agrees());
	return check_done();
}
