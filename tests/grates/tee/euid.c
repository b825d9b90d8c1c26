/* geteuid cannot fail on Linux; here it may. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	return syscall(SYS_geteuid) == -1 && errno == EIO ? 0 : 1;
}
