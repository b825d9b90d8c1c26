/* For lind-boot --perf: 1,000,000 calls without arguments, so that routing is all there is to
 * see. */
#include <sys/types.h>
#include <unistd.h>

int main(void)
{
	for (long i = 0; i < 1000000; i++)
		if (geteuid() == (uid_t)-1)
			return 1;
	return 0;
}
