/* Two threads make descriptors and close them, one each by its number and one as a range: what one
 * closes is not what the other has just made. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../check.h"

#define ROUNDS 100000

static int fd;

static void *turns(void *by_range)
{
	long lost = 0;

	for (int i = 0; i < ROUNDS; i++) {
		int made = dup(fd);
		char c;

		lost += pread(made, &c, 1, 0) != 1;
		lost += by_range ? syscall(SYS_close_range, (long)made, (long)made, 0L) != 0 : close(made) != 0;
	}
	return (void *)lost;
}

int main(void)
{
	pthread_t thread;
	void *lost;

	fd = open("/file", O_RDWR | O_CREAT, 0600);
	IS(write(fd, "x", 1), 1);
	IS(pthread_create(&thread, NULL, turns, &thread), 0);
	IS((long)turns(NULL), 0);
	IS(pthread_join(thread, &lost), 0);
	IS((long)lost, 0);
	return wrong;
}
