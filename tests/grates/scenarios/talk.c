#define _GNU_SOURCE
/* talk BYTES PORT...: sends so much to a server of its own at each port, and says whether the last
 * took half a second or more. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int talk(int port, size_t bytes)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), one = 1, peer;
	static char text[1024], back[1024];
	size_t sent = 0, got = 0;

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(server, (void *)&at, sizeof at) || listen(server, 1) || connect(client, (void *)&at, sizeof at))
		return -1;
	peer = accept(server, NULL, NULL);
	while (got < bytes) {
		size_t left = bytes - sent < sizeof text ? bytes - sent : sizeof text;
		ssize_t n = left ? send(client, text, left, 0) : 0;

		if (n < 0 || (sent += (size_t)n, n = recv(peer, back, sizeof back, 0)) <= 0)
			return -1;
		got += (size_t)n;
	}
	close(peer), close(client), close(server);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		double start = now();

		if (talk(atoi(argv[i]), (size_t)atoi(argv[1])))
			return 1;
		if (i < argc - 1)
			printf("%s: sent\n", argv[i]);
		else
			printf("%s: %s\n", argv[i], now() - start > 0.5 ? "held back" : "at once");
	}
	return 0;
}
