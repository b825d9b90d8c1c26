/* Files that travel by SCM_RIGHTS: one open file at both ends, alive while it is on its way, looked
 * at with MSG_PEEK, several at once, between processes. */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 200

static struct msghdr message(struct iovec *data, char *control, int count)
{
	struct msghdr m = { .msg_iov = data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	return m;
}

static void fill(struct msghdr *m, const int *fds, int count)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
}

static void send_fds(int to, const int *fds, int count)
{
	_Alignas(8) char control[CMSG_SPACE(MOST * sizeof(int))] = { 0 };
	struct iovec data = { "x", 1 };
	struct msghdr m = message(&data, control, count);

	fill(&m, fds, count);
	CHECK_EQ(sendmsg(to, &m, 0), 1);
}

static int take(struct msghdr *m, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int count = c ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;

	if (c)
		memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	return count;
}

static int receive_fds(int from, int *fds, int room, int flags)
{
	_Alignas(8) char control[CMSG_SPACE(MOST * sizeof(int))] = { 0 };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr m = message(&data, control, room);

	NEED(recvmsg(from, &m, flags) == 1);
	return take(&m, fds);
}

/* Its position, flags, contents and locks are those of the file that was sent. */
static void is_the_same(const int pair[2])
{
	char text[8] = { 0 };
	int fd = check_file("f", "0123456789"), got[MOST];

	send_fds(pair[0], &fd, 1);
	NEED(receive_fds(pair[1], got, 1, 0) == 1);
	CHECK_EQ(fcntl(got[0], F_GETFD), 0);
	CHECK_EQ(read(got[0], text, 3), 3);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);
	CHECK_EQ(fcntl(fd, F_SETFL, O_APPEND), 0);
	CHECK(fcntl(got[0], F_GETFL) & O_APPEND);
	CHECK_EQ(write(got[0], "ab", 2), 2);
	CHECK_EQ(pread(fd, text, 4, 8), 4);
	CHECK_STR(text, "89ab");
	close(fd);
	CHECK_EQ(lseek(got[0], 1, SEEK_SET), 1);
	CHECK_EQ(dup2(got[0], 99), 99);
	close(got[0]);
	CHECK_EQ(lseek(99, 0, SEEK_CUR), 1);
	close(99);
	NEED((fd = open("f", O_RDONLY)) >= 0);
	send_fds(pair[0], &fd, 1);
	NEED(receive_fds(pair[1], got, 1, MSG_CMSG_CLOEXEC) == 1);
	CHECK_EQ(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	CHECK_ERRNO(write(got[0], "x", 1), EBADF);
	close(fd);
	close(got[0]);
}

/* Closed by who sent it, and without a name. */
static void lives_on_its_way(const int pair[2])
{
	char text[16] = { 0 };
	struct stat st;
	int fd = check_file("g", "still here"), got[MOST];

	CHECK_EQ(lseek(fd, 6, SEEK_SET), 6);
	send_fds(pair[0], &fd, 1);
	close(fd);
	CHECK_EQ(unlink("g"), 0);
	for (int i = 0; i < 3; i++) {
		NEED(receive_fds(pair[1], got, 1, i < 2 ? MSG_PEEK : 0) == 1);
		CHECK_EQ(pread(got[0], text, 15, 0), 10);
		CHECK_STR(text, "still here");
		CHECK_EQ(lseek(got[0], 0, SEEK_CUR), 6 + i);
		CHECK_EQ(lseek(got[0], 1, SEEK_CUR), 7 + i);
		CHECK_EQ(fstat(got[0], &st), 0);
		CHECK_EQ(st.st_nlink, 0);
		close(got[0]);
	}
}

/* Files, a directory, a pipe and a device in one message; room for some of them. */
static void several(const int pair[2])
{
	int p[2], fds[4], got[MOST];
	char text[8] = { 0 };
	struct stat st;

	NEED(pipe(p) == 0);
	NEED((fds[0] = open("f", O_RDWR)) >= 0);
	fds[1] = p[1];
	NEED((fds[2] = open(".", O_RDONLY | O_DIRECTORY)) >= 0);
	NEED((fds[3] = open("/dev/null", O_RDWR)) >= 0);
	send_fds(pair[0], fds, 4);
	send_fds(pair[0], fds, 4);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	NEED(receive_fds(pair[1], got, 4, 0) == 4);
	CHECK_EQ(pread(got[0], text, 3, 0), 3);
	CHECK_STR(text, "012");
	CHECK_EQ(write(got[1], "p", 1), 1);
	CHECK_EQ(read(p[0], text, 8), 1);
	CHECK_EQ(fstat(got[2], &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_EQ(write(got[3], "n", 1), 1);
	for (int i = 0; i < 4; i++)
		close(got[i]);
	NEED(receive_fds(pair[1], got, 2, 0) == 2);
	CHECK_EQ(pread(got[0], text, 3, 0), 3);
	close(got[0]);
	close(got[1]);
	CHECK_EQ(read(p[0], text, 8), 0);
	close(p[0]);
}

/* A child that already waits, and hands it on to the next. */
static void between_processes(const int pair[2])
{
	char text[8] = { 0 };
	int fd, got[MOST], more[2], status, tries = 0;
	pid_t child;

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, more) == 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		if (receive_fds(pair[1], got, 1, 0) != 1 || read(got[0], text, 2) != 2 || strcmp(text, "01"))
			_exit(1);
		send_fds(more[0], got, 1);
		_exit(0);
	}
	usleep(50000);
	NEED((fd = open("f", O_RDWR)) >= 0);
	send_fds(pair[0], &fd, 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	NEED(receive_fds(more[1], got, 1, 0) == 1);
	CHECK_EQ(read(got[0], text, 2), 2);
	CHECK_STR(text, "23");
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
	close(got[0]);
	/* A message that is thrown away unread. */
	NEED(mkfifo("p", 0600) == 0);
	NEED((got[0] = open("p", O_RDONLY | O_NONBLOCK)) >= 0 && (got[1] = open("p", O_WRONLY)) >= 0);
	send_fds(more[0], &got[1], 1);
	close(got[1]);
	CHECK_ERRNO(read(got[0], text, 2), EAGAIN);
	close(more[0]);
	close(more[1]);
	while (read(got[0], text, 2) < 0 && tries++ < 100)
		usleep(10000);
	CHECK(tries < 100);
	close(got[0]);
	CHECK_EQ(unlink("p"), 0);
	close(fd);
}

/* sendmmsg and recvmmsg. */
static void many(const int pair[2])
{
	_Alignas(8) char control[3][CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data[3];
	struct mmsghdr m[3] = { 0 };
	char bytes[] = "abc", text[2] = { 0 };
	int fds[3], got;

	for (int i = 0; i < 3; i++) {
		NEED((fds[i] = open("f", O_RDONLY)) >= 0);
		CHECK_EQ(lseek(fds[i], i, SEEK_SET), i);
		data[i] = (struct iovec){ &bytes[i], 1 };
		m[i].msg_hdr = message(&data[i], control[i], 1);
		fill(&m[i].msg_hdr, &fds[i], 1);
	}
	CHECK_EQ(sendmmsg(pair[0], m, 3, 0), 3);
	for (int i = 0; i < 3; i++) {
		close(fds[i]);
		m[i].msg_hdr = message(&data[i], control[i], 1);
	}
	CHECK_EQ(recvmmsg(pair[1], m, 3, 0, NULL), 3);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(m[i].msg_len, 1);
		NEED(take(&m[i].msg_hdr, &got) == 1);
		CHECK_EQ(read(got, text, 1), 1);
		CHECK_EQ(text[0], '0' + i);
		close(got);
	}
}

/* As many as there is room for, again and again: nothing is left over. */
static void a_crowd(const int pair[2])
{
	int fd, fds[MOST], got[MOST];

	NEED((fd = open("f", O_RDONLY)) >= 0);
	for (int i = 0; i < MOST; i++)
		fds[i] = fd;
	for (int round = 0; round < 5; round++) {
		send_fds(pair[0], fds, MOST);
		NEED(receive_fds(pair[1], got, MOST, 0) == MOST);
		for (int i = 0; i < MOST; i++) {
			CHECK_EQ(lseek(got[i], 1, SEEK_CUR), round * MOST + i + 1);
			close(got[i]);
		}
	}
	close(fd);
}

static void *sends(void *socket)
{
	int fd;

	for (int i = 0; i < 200; i++) {
		NEED((fd = open("f", O_RDONLY)) >= 0);
		CHECK_EQ(lseek(fd, i % 10, SEEK_SET), i % 10);
		send_fds(*(const int *)socket, &fd, 1);
		close(fd);
	}
	return NULL;
}

/* Threads that send and receive. */
static void with_threads(const int pair[2])
{
	pthread_t thread;
	char text[2] = { 0 };
	int got;

	NEED(pthread_create(&thread, NULL, sends, (void *)&pair[0]) == 0);
	for (int i = 0; i < 200; i++) {
		NEED(receive_fds(pair[1], &got, 1, 0) == 1);
		CHECK_EQ(pread(got, text, 1, 0), 1);
		CHECK_EQ(text[0], '0');
		CHECK_EQ(lseek(got, 0, SEEK_CUR), i % 10);
		close(got);
	}
	pthread_join(thread, NULL);
}

int main(void)
{
	const int kinds[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	char *memory;
	int pair[2], fd, got;

	for (int i = 0; i < 3; i++) {
		NEED(socketpair(AF_UNIX, kinds[i], 0, pair) == 0);
		is_the_same(pair);
		lives_on_its_way(pair);
		several(pair);
		between_processes(pair);
		many(pair);
		a_crowd(pair);
		with_threads(pair);
		CHECK_EQ(unlink("f"), 0);
		close(pair[0]);
		close(pair[1]);
	}
	/* Mapped where it arrives. */
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	fd = check_file("m", "mapped");
	send_fds(pair[0], &fd, 1);
	NEED(receive_fds(pair[1], &got, 1, 0) == 1);
	NEED((memory = mmap(NULL, 6, PROT_READ | PROT_WRITE, MAP_SHARED, got, 0)) != MAP_FAILED);
	memcpy(memory, "M", 1);
	CHECK_EQ(pread(fd, &(char){ 0 }, 1, 0), 1);
	CHECK_EQ(unlink("m"), 0);
	return check_done();
}
