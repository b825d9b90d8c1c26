/*
 * The probe that `lind-boot doctor` runs in a sandbox: tries the operation that each word names,
 * and prints the word and the error number.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/raw.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* lind-boot finds programs by name for grates on its line, and this makes us one. No call is
 * ever handled here. */
__attribute__((export_name("__lind_handle"))) int64_t lind_handle(uint32_t entry, const struct lind_call *call);

int64_t lind_handle(uint32_t entry, const struct lind_call *call)
{
	(void)entry, (void)call;
	return -ENOSYS;
}

static int opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? fd : close(fd);
}

static int connected(int family, const void *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = fd < 0 ? fd : connect(fd, address, size);
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return r;
}

static int to_port(const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port)) };

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connected(AF_INET, &to, sizeof to);
}

/* An abstract name begins with a NUL. */
static int to_socket(const char *name, size_t before)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(name);

	if (before + len >= sizeof to.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(to.sun_path + before, name, len);
	return connected(AF_UNIX, &to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + before + len));
}

static int become(const char *path)
{
	char *argv[] = { (char *)path, "--version", NULL };

	return execv(path, argv);
}

static int tried(char what, const char *rest)
{
	switch (what) {
	case 'r':
		return opened(rest, O_RDONLY);
	case 'w':
		return opened(rest, O_WRONLY | O_CREAT);
	case 'c':
		return to_port(rest);
	case 'u':
		return to_socket(rest, 0);
	case 'a':
		return to_socket(rest, 1);
	case 'k':
		return kill((pid_t)atoi(rest), 0);
	case 'x':
		return become(rest);
	}
	lind_die("lind-boot starts this program itself: lind-boot doctor");
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int r = strlen(argv[i]) < 3 || argv[i][1] != ':' ? tried(0, "") : tried(argv[i][0], argv[i] + 2);

		printf("%s %d\n", argv[i], r < 0 ? errno : 0);
		fflush(stdout);
	}
	return 0;
}
