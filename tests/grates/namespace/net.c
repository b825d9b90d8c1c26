/* net PORT OTHER: two servers of its own; what is said to the one at PORT is inside. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int talk(int port, int before)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0),
	    copy = before ? dup(client) : -1, one = 1, peer;
	char byte;

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(server, (void *)&at, sizeof at) || listen(server, 1) || connect(client, (void *)&at, sizeof at))
		return -1;
	peer = accept(server, NULL, NULL);
	if (send(before ? copy : client, "p", 1, 0) != 1 || recv(peer, &byte, 1, 0) != 1 || byte != 'p')
		return -1;
	close(peer), close(client), close(server), close(copy);
	return 0;
}

int main(int argc, char **argv)
{
	(void)argc;
	return talk(atoi(argv[1]), 0) || talk(atoi(argv[2]), 0) || talk(atoi(argv[1]), 1);
}
