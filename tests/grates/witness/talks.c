/* Calls with structures, for what a log shows of them. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char line_end[] = "/nowhere/a\nb\"c";
	int fd = socket(AF_INET, SOCK_STREAM, 0), un = socket(AF_UNIX, SOCK_STREAM, 0);

	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	connect(fd, (struct sockaddr *)&to, sizeof to);
	strcpy(at.sun_path, "/nowhere/s");
	connect(un, (struct sockaddr *)&at, sizeof at);
	open(line_end, O_WRONLY | O_CREAT, 0640);
	mkdir("/nowhere/d", 0750);
	return 0;
}
