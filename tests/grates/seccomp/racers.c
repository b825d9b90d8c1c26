/* Sixteen threads and processes make calls that are allowed, decided and denied; each looks at its
 * own results. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 3000

static void *race(void *x)
{
	long wrong = 0;

	for (int i = 0; i < TIMES; i++) {
		int fd;

		wrong += getpid() <= 0;
		wrong += !(syscall(SYS_geteuid) == -1 && errno == EMLINK);
		wrong += !(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		wrong += fd < 0 || close(fd);
		wrong += !(access("/grates-test/secret", 0) < 0 && errno == EACCES);
		wrong += access("/", 0) != 0;
	}
	(void)x;
	return (void *)wrong;
}

int main(void)
{
	pthread_t threads[8];
	pid_t children[8];
	long wrong = 0;

	for (int i = 0; i < 8; i++)
		if (!(children[i] = fork()))
			_exit(race(NULL) != NULL);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, race, NULL);
	for (int i = 0; i < 8; i++) {
		void *result;
		int status;

		pthread_join(threads[i], &result);
		wrong += (long)result;
		wrong += waitpid(children[i], &status, 0) != children[i] || status;
	}
	printf("wrong %ld\n", wrong);
	return 0;
}
