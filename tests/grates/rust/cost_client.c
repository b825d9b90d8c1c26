/* Makes one kind of call in batches: `KIND CALLS BATCHES` prints the nanoseconds of a call in each
 * batch. Without arguments it ends at once. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int sock;

static void answer(void)
{
	if (getpid() < 0)
		abort();
}

static void pass(void)
{
	geteuid();
}

static void forward(void)
{
	getegid();
}

static void path(void)
{
	struct stat st;

	if (stat("/", &st))
		abort();
}

/* Nothing is sent when a datagram socket connects. */
static void address(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};

	if (connect(sock, (struct sockaddr *)&to, sizeof to))
		abort();
}

static const struct {
	const char *name;
	void (*call)(void);
} kinds[] = {
	{ "answer", answer },
	{ "pass", pass },
	{ "forward", forward },
	{ "path", path },
	{ "address", address },
};

int main(int argc, char **argv)
{
	int calls = argc > 3 ? atoi(argv[2]) : 0, batches = argc > 3 ? atoi(argv[3]) : 0;
	struct timespec from, to;

	if (argc == 1)
		return 0;
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		if (strcmp(kinds[kind].name, argv[1]))
			continue;
		for (int batch = 0; batch < batches; batch++) {
			clock_gettime(CLOCK_MONOTONIC, &from);
			for (int i = 0; i < calls; i++)
				kinds[kind].call();
			clock_gettime(CLOCK_MONOTONIC, &to);
			printf("%.1f\n", ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / calls);
		}
		return 0;
	}
	return 2;
}
