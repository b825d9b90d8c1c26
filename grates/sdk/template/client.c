/* Prints the name of the machine. With `race`, 16 threads ask for it at once; with `bad`, for an
 * address without memory. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static void *ask(void *first)
{
	struct utsname one;

	for (int i = 0; i < 1000; i++)
		if (uname(&one) || strcmp(one.nodename, first))
			return first;
	return NULL;
}

int main(int argc, char **argv)
{
	struct utsname first;
	pthread_t threads[16];
	void *wrong;

	if (argc > 1 && !strcmp(argv[1], "bad"))
		return uname((struct utsname *)16) != -1 || errno != EFAULT;
	if (uname(&first))
		return 1;
	if (argc > 1)
		for (int i = 0; i < 16; i++)
			if (pthread_create(&threads[i], NULL, ask, first.nodename))
				return 1;
	for (int i = 0; argc > 1 && i < 16; i++)
		if (pthread_join(threads[i], &wrong) || wrong)
			return 1;
	puts(first.nodename);
	return 0;
}
