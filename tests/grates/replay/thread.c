#include <pthread.h>
#include <stdio.h>

static void *other(void *unused)
{
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, other, NULL))
		return 1;
	pthread_join(thread, NULL);
	puts("two threads");
	return 0;
}
