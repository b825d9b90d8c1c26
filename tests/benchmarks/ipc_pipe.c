/* Round trips of 1 byte to 10 KiB between two processes over a pair of pipes. */
#include "ipc.h"

int main(void)
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		bench_die("pipe");
	return ipc_round_trips("Pipe", there[0], back[1], back[0], there[1]);
}
