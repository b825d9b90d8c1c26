/* Round trips of 1 byte to 10 KiB between two processes over a unix stream socket. */
#include "ipc.h"

#include <sys/socket.h>

int main(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		bench_die("socketpair");
	return ipc_round_trips("UDS", ends[1], ends[1], ends[0], ends[0]);
}
