/* names PREFIX: unix sockets by names below PREFIX, by a link that leads there, and elsewhere. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int talk(const char *at, const char *by)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX }, other = { .sun_family = AF_UNIX };
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	char byte = 0;

	strcpy(name.sun_path, at);
	strcpy(other.sun_path, by);
	if (bind(server, (void *)&name, sizeof name) || listen(server, 1) ||
	    connect(client, (void *)&other, sizeof other))
		return 1;
	peer = accept(server, NULL, NULL);
	if (send(client, "u", 1, 0) != 1 || recv(peer, &byte, 1, 0) != 1 || byte != 'u')
		return 1;
	close(server), close(client), close(peer);
	return unlink(at);
}

int main(int argc, char **argv)
{
	char in[64], by_link[] = "/grates-test/way/s";

	(void)argc;
	mkdir(argv[1], 0700);
	sprintf(in, "%s/s", argv[1]);
	unlink("/grates-test/way");
	if (symlink(argv[1], "/grates-test/way"))
		return 2;
	return talk(in, in) || talk(in, by_link) || talk("/grates-test/s", "/grates-test/s") ||
	    unlink("/grates-test/way");
}
