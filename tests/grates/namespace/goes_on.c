/* Has the grate inside end, then tries both sides. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
	int inside, outside;

	rmdir("/tmp/none");
	usleep(50000);
	inside = open("/tmp/x", O_RDWR | O_CREAT, 0600) < 0 ? errno : 0;
	outside = open("/grates-test", O_RDONLY) < 0 ? errno : 0;
	printf("inside %s, outside %d\n", inside == EIO ? "EIO" : "other", outside);
	return 0;
}
