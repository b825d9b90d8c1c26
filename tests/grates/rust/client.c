/* Connects to ports of this machine, or writes: `connect PORT...` prints for each port whether it
 * was let through, `writes N` writes that often and has a child that writes twice. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long result)
{
	printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
}

static int connects(char **ports)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int s;

	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	for (; *ports; ports++) {
		to.sin_port = htons((unsigned short)atoi(*ports));
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		say(ports[1] ? "first" : "last", connect(s, (struct sockaddr *)&to, sizeof to));
		close(s);
		s = socket(AF_INET, SOCK_STREAM, 0);
		say("fastopen", sendto(s, "x", 1, 0x20000000 | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to));
		close(s);
	}
	say("datagram", socket(AF_INET, SOCK_DGRAM, 0));
	say("unix", socket(AF_UNIX, SOCK_DGRAM, 0));
	errno = 0;
	say("nowhere", connect(socket(AF_INET, SOCK_STREAM, 0), (void *)16, sizeof to));
	return 0;
}

static int writes(int count)
{
	struct iovec part = { "x", 1 };
	int ends[2];

	if (pipe(ends))
		return 1;
	for (int i = 0; i < count; i++)
		if (i % 2 ? write(ends[1], "x", 1) != 1 : writev(ends[1], &part, 1) != 1)
			return 1;
	if (!fork())
		_exit(write(ends[1], "x", 1) != 1 || write(ends[1], "x", 1) != 1);
	return wait(NULL) < 0;
}

int main(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], "connect") ? connects(argv + 2) : writes(argc > 2 ? atoi(argv[2]) : 0);
}
