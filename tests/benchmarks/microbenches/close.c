/* For lind-boot --perf: 1,000,000 calls that fail with EBADF at the descriptor table. */
#include <unistd.h>

int main(void)
{
	for (long i = 0; i < 1000000; i++)
		if (close(-1) != -1)
			return 1;
	return 0;
}
