/* Serves one connection at the port that it is given, and is its own client. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "80")) };
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), s;
	char text[16] = "";

	if (bind(l, (struct sockaddr *)&in, sizeof in) || listen(l, 1)) {
		perror("listen");
		return 1;
	}
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(c, (struct sockaddr *)&in, sizeof in) || (s = accept(l, NULL, NULL)) < 0) {
		perror("connect");
		return 1;
	}
	write(s, "served\n", 7);
	close(s);
	return write(1, text, (size_t)read(c, text, sizeof text)) < 0;
}
