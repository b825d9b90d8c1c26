/* probe WORD...: tries the operation of each word and prints the result; `sleep` never ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int result(const char *what, const char *path, int r)
{
	printf("%s %s: %s\n", what, path, r < 0 ? strerror(errno) : "ok");
	return r;
}

static void write_to(const char *path)
{
	int fd = result("write", path, open(path, O_CREAT | O_WRONLY, 0644));

	if (fd >= 0)
		close(fd);
}

static void read_from(const char *path)
{
	int fd = result("read", path, open(path, O_RDONLY));

	if (fd >= 0)
		close(fd);
}

/* PORT of this host, or ADDRESS:PORT. */
static void connect_to(const char *place)
{
	const char *colon = strchr(place, ':');
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((unsigned short)atoi(colon ? colon + 1 : place)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char address[16] = "127.0.0.1";

	if (colon)
		snprintf(address, sizeof address, "%.*s", (int)(colon - place), place);
	to.sin_addr.s_addr = inet_addr(address);
	result("connect", place, fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof to));
}

/* As many empty files as there is room for, up to 10,000. */
static void fill(const char *folder)
{
	char name[300];
	int n = 0, fd;

	do {
		snprintf(name, sizeof name, "%s%d", folder, n);
		if ((fd = open(name, O_CREAT | O_WRONLY, 0600)) >= 0)
			close(fd);
	} while (fd >= 0 && ++n < 10000);
	printf("empty files: %d\n", n);
}

/* Mode, owner and times of what is open. */
static void change_open(const char *number)
{
	int fd = atoi(number);

	result("fchmod", number, fchmod(fd, 06777));
	result("fchown", number, fchown(fd, 65534, 65534));
	result("futimens", number, futimens(fd, (struct timespec[2]){ { 0 } }));
}

/* Which of its own addresses would be used, as a C library asks before it sorts those of a host.
 * Nothing can be sent there. */
static void ask(const char *address)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(65535), .sin_addr.s_addr = inet_addr(address)
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	result("ask", address, connect(fd, (struct sockaddr *)&to, sizeof to));
	result("send", address, (int)send(fd, "x", 1, 0));
	to.sin_port = 0;
	result("bind", address, bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof to));
}

/* A unix socket: @NAME has no file. */
static void socket_at(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*name != '@'));

	memcpy(at.sun_path, name, length < sizeof at.sun_path ? length : sizeof at.sun_path - 1);
	if (*name == '@')
		at.sun_path[0] = 0;
	result("connect", "unix", connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&at, size));
	result("bind", "unix", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&at, size));
}

/* A UDP and a TCP socket at a port of 127.0.0.1, and a TCP socket that listens though it is bound
 * to nothing. */
static void serve_at(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons((unsigned short)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	result("bind udp", port, bind(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&at, sizeof at));
	if (result("bind tcp", port, bind(fd, (struct sockaddr *)&at, sizeof at)) == 0)
		result("listen", port, listen(fd, 1));
	result("listen", "nowhere", listen(socket(AF_INET, SOCK_STREAM, 0), 1));
}

/* Looks a name up, and says whether that took less than a second. */
static void look_up(const char *name)
{
	struct timespec from, to;
	struct addrinfo *found;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &from);
	r = getaddrinfo(name, "80", NULL, &found);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("look up %s: %d, %s\n", name, r, to.tv_sec - from.tv_sec > 2 ? "late" : "at once");
}

int main(int argc, char **argv)
{
	char cwd[4096];

	printf("in %s home %s\n", getcwd(cwd, sizeof cwd), getenv("HOME"));
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *rest = word + 2;

		if (!strcmp(word, "sleep"))
			for (;;)
				pause();
		else if (!strncmp(word, "w:", 2))
			write_to(rest);
		else if (!strncmp(word, "r:", 2))
			read_from(rest);
		else if (!strncmp(word, "c:", 2))
			connect_to(rest);
		else if (!strncmp(word, "R:", 2))
			result("chroot", rest, chroot(rest));
		else if (!strncmp(word, "d:", 2))
			result("chdir", rest, chdir(rest));
		else if (!strncmp(word, "k:", 2))
			result("kill", rest, kill(atoi(rest), 0));
		else if (!strncmp(word, "m:", 2))
			result("mkdir", rest, mkdir(rest, 0755));
		else if (!strncmp(word, "e:", 2))
			printf("env %s: %s\n", rest, getenv(rest) ? getenv(rest) : "unset");
		else if (!strncmp(word, "a:", 2))
			ask(rest);
		else if (!strncmp(word, "o:", 2))
			change_open(rest);
		else if (!strncmp(word, "n:", 2))
			fill(rest);
		else if (!strncmp(word, "u:", 2))
			socket_at(rest);
		else if (!strncmp(word, "s:", 2))
			serve_at(rest);
		else if (!strncmp(word, "h:", 2))
			look_up(rest);
		else if (!strcmp(word, "trap"))
			__builtin_trap();
		else if (!strncmp(word, "v:", 2))
			result("rename", rest, rename(rest, "moved-away"));
		else if (!strncmp(word, "V:", 2))
			result("rename to", rest, rename("moved-away", rest));
		else if (!strncmp(word, "D:", 2))
			result("rmdir", rest, rmdir(rest));
		else if (!strncmp(word, "L:", 2))
			result("symlink", rest, symlink("moved-away", rest));
		else
			return 2;
		fflush(stdout);
	}
	return 7;
}
