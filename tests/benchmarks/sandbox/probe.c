/*
 * Tries from inside a sandbox what it should refuse; the host looks what came of it. Arguments:
 * TOKEN CANARY TARGET PORT PID. Prints a line for each probe: its name, what the sandbox showed or
 * answered.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void say(const char *probe, int failed)
{
	printf("%s: %s\n", probe, failed ? strerror(errno) : "ok");
}

/* Whether a process of the host can be seen: one whose command line has the token, and is not this
 * one. */
static void processes(const char *token)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int count = 0, seen = 0;
	while (proc && (entry = readdir(proc))) {
		char path[300], line[512];
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		count++;
		snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
		int fd = open(path, O_RDONLY);
		ssize_t got = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
		if (fd >= 0)
			close(fd);
		/* The words are separated by NULs; the host's process has the token alone as its first word. */
		line[got > 0 ? got : 0] = 0;
		if (strcmp(line, token) == 0)
			seen = 1;
	}
	printf("processes: %d, %s\n", count, seen ? "the host's" : "none of the host's");
}

static void reads(const char *canary)
{
	char text[100];
	int fd = open(canary, O_RDONLY);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (got < 0) {
		say("read", 1);
		return;
	}
	text[got] = 0;
	printf("read: got %s\n", text);
}

static void writes(const char *target)
{
	int fd = open(target, O_WRONLY | O_CREAT, 0600);
	say("write", fd < 0 || write(fd, "x", 1) != 1);
}

static void connects(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	say("connect", fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address));
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	setbuf(stdout, NULL);
	processes(argv[1]);
	reads(argv[2]);
	writes(argv[3]);
	connects(atoi(argv[4]));
	say("signal", kill(atoi(argv[5]), SIGKILL));
	return 0;
}
