// opens a
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define COUNT 8
static void *handles[COUNT];
static int sums[COUNT];
static int *owns[COUNT];
static pthread_barrier_t barrier;
static void *work(void *arg)
{
	int n = (int)(long)arg;
	pthread_barrier_wait(&barrier);
	handles[n] = dlopen("./liba.so", RTLD_NOW);
	if (!handles[n])
		exit(puts(dlerror()) < 0);
	int (*add)(int) = (int (*)(int))dlsym(handles[n], "add");
	for (int i = 0; i < 1000; i++)
		sums[n] = add(n);
	owns[n] = dlsym(handles[n], "own");
	int same = *owns[n] == sums[n];
	pthread_barrier_wait(&barrier);
	return same ? handles[n] : NULL;
}
int main(void)
{
	pthread_t threads[COUNT];
	void *result;
	int good = 0, apart = 1;
	pthread_barrier_init(&barrier, NULL, COUNT);
	for (long i = 0; i < COUNT; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < COUNT; i++) {
		pthread_join(threads[i], &result);
		good += result && result == handles[0];
		apart &= i == 0 || owns[i] != owns[0];
	}
	printf("%d %d\n", good, apart);
	for (int i = 0; i < COUNT; i++)
		printf("%d ", sums[i]);
	printf("\n%d\n", handles[0] ? ((int (*)(void))dlsym(handles[0], "starts"))() : -1);
	return 0;
}
