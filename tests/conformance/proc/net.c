/* /proc/net: the sockets that processes have, as netstat and lsof read them. */
#include "check.h"
#include "slurp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long inode(int fd)
{
	struct stat st;

	NEED(fstat(fd, &st) == 0);
	return st.st_ino;
}

struct row {
	char own[40], peer[40];
	unsigned own_port, peer_port, state, waiting, user;
};

/* The row of a socket in a list of internet sockets; 0 if there is none. */
static int find(const char *path, int fd, struct row *row)
{
	unsigned long wanted = inode(fd), found;

	for (char *line = strchr(slurp(path), '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		if (sscanf(line, " %*d: %39[0-9A-F]:%x %39[0-9A-F]:%x %x %*x:%x %*x:%*x %*x %u %*u %lu", row->own,
			&row->own_port, row->peer, &row->peer_port, &row->state, &row->waiting, &row->user,
			&found) == 8 &&
		    found == wanted)
			return 1;
	return 0;
}

static void headings(void)
{
	CHECK(strstr(slurp("/proc/net/tcp"), "local_address") != NULL);
	CHECK(strstr(slurp("/proc/net/tcp"), "inode") != NULL);
	CHECK(strstr(slurp("/proc/net/udp"), " drops") != NULL);
	CHECK(strstr(slurp("/proc/net/raw"), "local_address") != NULL);
	CHECK(strstr(slurp("/proc/net/unix"), "RefCount") != NULL);
	CHECK(strstr(slurp("/proc/net/dev"), " face |bytes ") != NULL);
	CHECK(strstr(slurp("/proc/self/net/dev"), "\n    lo:") != NULL);
	CHECK(strstr(slurp("/proc/net/sockstat"), "\nTCP: inuse ") != NULL);
	CHECK_ERRNO(open("/proc/net/tcp", O_WRONLY), EACCES);
	memset(text, 0, 16);
	CHECK_EQ(readlink("/proc/net", text, 16), 8);
	CHECK_STR(text, "self/net");
}

static void tcp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, other;
	socklen_t length = sizeof address;
	int listening = socket(AF_INET, SOCK_STREAM, 0), calling = socket(AF_INET, SOCK_STREAM, 0), called;
	unsigned port;
	struct row row;

	NEED(listening >= 0);
	NEED(calling >= 0);
	/* A socket without a port is not listed. */
	CHECK_EQ(find("/proc/net/tcp", calling, &row), 0);
	NEED(bind(listening, (void *)&address, sizeof address) == 0);
	NEED(listen(listening, 5) == 0);
	NEED(getsockname(listening, (void *)&address, &length) == 0);
	port = ntohs(address.sin_port);
	NEED(find("/proc/net/tcp", listening, &row));
	CHECK_STR(row.own, "0100007F");
	CHECK_EQ(row.own_port, port);
	CHECK_STR(row.peer, "00000000");
	CHECK_EQ(row.peer_port, 0);
	CHECK_EQ(row.state, 10);
	CHECK_EQ(row.user, geteuid());

	NEED(connect(calling, (void *)&address, sizeof address) == 0);
	called = accept(listening, NULL, NULL);
	NEED(called >= 0);
	NEED(getsockname(calling, (void *)&other, &length) == 0);
	NEED(find("/proc/net/tcp", calling, &row));
	CHECK_EQ(row.own_port, ntohs(other.sin_port));
	CHECK_EQ(row.peer_port, port);
	CHECK_EQ(row.state, 1);
	CHECK_EQ(write(calling, "12345", 5), 5);
	NEED(recv(called, text, 5, MSG_PEEK) == 5);
	NEED(find("/proc/net/tcp", called, &row));
	CHECK_EQ(row.own_port, port);
	CHECK_EQ(row.peer_port, ntohs(other.sin_port));
	CHECK_EQ(row.waiting, 5);
	NEED(read(called, text, 5) == 5);
	/* A half that was closed: CLOSE_WAIT. */
	CHECK_EQ(shutdown(calling, SHUT_WR), 0);
	NEED(read(called, text, 5) == 0);
	NEED(find("/proc/net/tcp", called, &row));
	CHECK_EQ(row.state, 8);
	close(calling);
	close(called);
	close(listening);
}

static void six(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct row row;

	if (fd < 0 || bind(fd, (void *)&address, sizeof address) != 0) {
		close(fd);
		return;
	}
	NEED(find("/proc/net/udp6", fd, &row));
	CHECK_STR(row.own, "00000000000000000000000001000000");
	CHECK(row.own_port != 0);
	CHECK_EQ(find("/proc/net/tcp6", fd, &row), 0);
	CHECK_EQ(find("/proc/net/udp", fd, &row), 0);
	close(fd);
}

static void udp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = sizeof address;
	struct row row;

	NEED(fd >= 0);
	NEED(bind(fd, (void *)&address, sizeof address) == 0);
	NEED(getsockname(fd, (void *)&address, &length) == 0);
	NEED(find("/proc/net/udp", fd, &row));
	CHECK_EQ(row.own_port, ntohs(address.sin_port));
	CHECK_EQ(row.state, 7);
	NEED(connect(fd, (void *)&address, sizeof address) == 0);
	NEED(find("/proc/net/udp", fd, &row));
	CHECK_EQ(row.state, 1);
	CHECK_EQ(row.peer_port, ntohs(address.sin_port));
	close(fd);
}

/* The row of a unix socket: flags, type, state, and the name, which may be empty. */
static int find_unix(int fd, unsigned *flags, unsigned *type, unsigned *state, char *name)
{
	unsigned long wanted = inode(fd), found;

	for (char *line = strchr(slurp("/proc/net/unix"), '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		*name = 0;
		if (sscanf(line + 1, "%*x: %*x %*x %x %x %x %lu%*1[ ]%107[^\n]", flags, type, state, &found, name) >=
			4 &&
		    found == wanted)
			return 1;
	}
	return 0;
}

static void unix_sockets(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	unsigned flags, type, state;
	char name[108], abstract[32];
	int pair[2], fd = socket(AF_UNIX, SOCK_STREAM, 0), other;

	NEED(fd >= 0);
	NEED(find_unix(fd, &flags, &type, &state, name));
	CHECK_EQ(flags, 0);
	CHECK_EQ(type, SOCK_STREAM);
	CHECK_EQ(state, 1);
	CHECK_STR(name, "");
	NEED(bind(fd, (void *)&address, sizeof address) == 0);
	NEED(listen(fd, 1) == 0);
	NEED(find_unix(fd, &flags, &type, &state, name));
	CHECK_EQ(flags, 0x10000);
	CHECK_EQ(state, 1);
	CHECK_STR(name, "socket");
	close(fd);
	CHECK_EQ(unlink("socket"), 0);

	snprintf(abstract, sizeof abstract, "%cnet-%d", 0, (int)getpid());
	memcpy(address.sun_path, abstract, sizeof abstract);
	other = socket(AF_UNIX, SOCK_DGRAM, 0);
	NEED(bind(other, (void *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract + 1))) == 0);
	NEED(find_unix(other, &flags, &type, &state, name));
	abstract[0] = '@';
	CHECK_STR(name, abstract);
	CHECK_EQ(type, SOCK_DGRAM);
	close(other);

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	NEED(find_unix(pair[1], &flags, &type, &state, name));
	CHECK_EQ(type, SOCK_SEQPACKET);
	CHECK_EQ(state, 3);
	close(pair[0]);
	close(pair[1]);
}

/* A child's are there too, until it has ended. */
static void of_children(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int up[2], down[2];
	unsigned port = 0;
	char wanted[32], byte;
	pid_t pid;

	NEED(pipe(up) == 0 && pipe(down) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		close(down[1]);
		if (fd < 0 || bind(fd, (void *)&address, sizeof address) || listen(fd, 1) ||
		    getsockname(fd, (void *)&address, &length))
			_exit(1);
		port = ntohs(address.sin_port);
		if (write(up[1], &port, sizeof port) != sizeof port)
			_exit(1);
		_exit(read(down[0], &byte, 1) != 0);
	}
	NEED(read(up[0], &port, sizeof port) == sizeof port);
	snprintf(wanted, sizeof wanted, ": 0100007F:%04X 00000000:0000 0A", port);
	CHECK(strstr(slurp("/proc/net/tcp"), wanted) != NULL);
	close(down[1]);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK(strstr(slurp("/proc/net/tcp"), wanted) == NULL);
}

int main(void)
{
	if (access("/proc/net/tcp", R_OK))
		check_skip("no /proc/net here");
	headings();
	tcp();
	udp();
	six();
	unix_sockets();
	of_children();
	return check_done();
}
