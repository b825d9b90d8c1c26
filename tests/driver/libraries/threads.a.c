#include <pthread.h>
#include <stdio.h>
_Thread_local int own = 100;
static int started;
static void *quick(void *arg) { return (char *)arg + 1; }
static void __attribute__((constructor)) up(void)
{
	void *result;
	pthread_t thread;
	pthread_create(&thread, NULL, quick, &started);
	pthread_join(thread, &result);
	started += result == (char *)&started + 1;
}
int starts(void) { return started; }
int add(int n) { return own += n; }
