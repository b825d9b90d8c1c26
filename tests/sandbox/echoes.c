/* Sends back what one client sends to the port that it is given, and then a blank and who that
 * was. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "80")) };
	socklen_t size = sizeof in;
	int l = socket(AF_INET, SOCK_STREAM, 0), s;
	static char text[65536];
	ssize_t n;

	if (bind(l, (struct sockaddr *)&in, sizeof in) || listen(l, 1)) {
		perror("listen");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	if ((s = accept(l, (struct sockaddr *)&in, &size)) < 0) {
		perror("accept");
		return 1;
	}
	while ((n = read(s, text, sizeof text)) > 0)
		if (write(s, text, (size_t)n) != n)
			return 1;
	dprintf(s, " %s:%d", inet_ntoa(in.sin_addr), ntohs(in.sin_port));
	return 0;
}
