// opens a
#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
static jmp_buf here;
static void (*leave)(jmp_buf *, int), (*back)(int);
static void over_the_library(void) { longjmp(here, 5); }
static void into_the_library(int n) { back(10 * n); }
int main(void)
{
	void *a = dlopen("./liba.so", RTLD_NOW);
	if (!a)
		return puts(dlerror()) < 0;
	leave = (void (*)(jmp_buf *, int))dlsym(a, "leave");
	back = (void (*)(int))dlsym(a, "back");
	int (*through)(void (*)(void)) = (int (*)(void (*)(void)))dlsym(a, "through");
	int (*comes_back)(void (*)(int), int) = (int (*)(void (*)(int), int))dlsym(a, "comes_back");
	volatile int turns = 0;
	int came = setjmp(here);
	if (came < 3)
		leave(&here, came + 1);
	printf("from the library %d\n", came);
	came = setjmp(here);
	if (came == 0)
		printf("%d\n", through(over_the_library));
	printf("over the library %d %d\n", came, ++turns);
	printf("into the library %d\n", comes_back(into_the_library, 4));
	return 0;
}
