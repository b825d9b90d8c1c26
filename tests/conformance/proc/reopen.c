/* Opening what is open, by /proc/self/fd: an open file of its own, with an access and flags of its
 * own, of pipes and devices too. */
#include "check.h"

#include <sys/socket.h>
#include <sys/stat.h>

static char path[64];

static const char *of(int fd)
{
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return path;
}

static void check_pipes(void)
{
	char byte;
	int p[2], own, other;

	NEED(pipe(p) == 0);
	NEED((own = open(of(p[0]), O_RDONLY | O_NONBLOCK)) >= 0);
	CHECK_ERRNO(read(own, &byte, 1), EAGAIN);
	CHECK(!(fcntl(p[0], F_GETFL) & O_NONBLOCK));
	CHECK_ERRNO(write(own, "x", 1), EBADF);
	/* The other end, of which there is one more then. */
	NEED((other = open(of(p[0]), O_WRONLY | O_TRUNC | O_CREAT, 0600)) >= 0);
	CHECK_EQ(write(other, "x", 1), 1);
	CHECK_EQ(read(own, &byte, 1), 1);
	close(p[1]);
	CHECK_ERRNO(read(own, &byte, 1), EAGAIN);
	close(other);
	CHECK_EQ(read(own, &byte, 1), 0);
	NEED((other = open(of(own), O_RDWR)) >= 0);
	CHECK_EQ(write(other, "y", 1), 1);
	CHECK_EQ(read(other, &byte, 1), 1);
	CHECK_EQ(byte, 'y');
	CHECK_ERRNO(open(of(own), O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHECK_ERRNO(lseek(other, 0, SEEK_CUR), ESPIPE);
	close(other), close(own), close(p[0]);
}

/* A pipe that is standard output can be opened for writing again. */
static void check_standard(void)
{
	char text[8] = { 0 };
	int p[2], kept = dup(1), own;

	NEED(pipe(p) == 0 && dup2(p[1], 1) == 1);
	CHECK_EQ((own = open("/dev/stdout", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666)) >= 0, 1);
	CHECK_EQ(write(own, "out", 3), 3);
	CHECK(fcntl(own, F_GETFL) & O_APPEND);
	CHECK(!(fcntl(p[1], F_GETFL) & O_APPEND));
	NEED(dup2(kept, 1) == 1);
	close(own), close(p[1]), close(kept);
	CHECK_EQ(read(p[0], text, sizeof text - 1), 3);
	CHECK_STR(text, "out");
	CHECK_EQ(read(p[0], text, 1), 0);
	close(p[0]);
}

static void check_others(void)
{
	struct stat st;
	int pair[2], null = open("/dev/null", O_RDONLY), own, file;

	NEED(null >= 0);
	CHECK_ERRNO(write(null, "x", 1), EBADF);
	NEED((own = open(of(null), O_WRONLY | O_TRUNC)) >= 0);
	CHECK_EQ(write(own, "x", 1), 1);
	CHECK_EQ(fcntl(own, F_GETFL) & O_ACCMODE, O_WRONLY);
	CHECK_EQ(fcntl(null, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(own), close(null);
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_ERRNO(open(of(pair[0]), O_RDWR), ENXIO);
	close(pair[0]), close(pair[1]);
	/* A file that has no name any more, and one by that very name. */
	file = check_file("f", "0123456789");
	CHECK_EQ(unlink("f"), 0);
	close(check_file("f (deleted)", ""));
	NEED((own = open(of(file), O_RDONLY)) >= 0);
	CHECK_ERRNO(write(own, "x", 1), EBADF);
	NEED((null = open(of(own), O_RDWR | O_TRUNC)) >= 0);
	CHECK_EQ(fstat(file, &st), 0);
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(truncate(of(file), 5), 0);
	CHECK_EQ(fstat(own, &st), 0);
	CHECK_EQ(st.st_size, 5);
	CHECK_ERRNO(open(of(file), O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	CHECK_ERRNO(open(of(file), O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK_EQ(stat("f (deleted)", &st), 0);
	CHECK_EQ(st.st_size, 0);
	close(own), close(null), close(file);
	CHECK_EQ(unlink("f (deleted)"), 0);
}

int main(void)
{
	if (access("/proc/self/fd", R_OK))
		check_skip("no /proc here");
	check_pipes();
	check_standard();
	check_others();
	return check_done();
}
