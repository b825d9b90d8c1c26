// opens a
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int helper(int x) { return -x; } /* not what the library calls */
int main(void)
{
	printf("before %d\n", dlopen("./liba.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
	void *a = dlopen("./liba.so", RTLD_NOW), *again = dlopen("./liba.so", RTLD_LAZY);
	if (!a)
		return puts(dlerror()) < 0;
	printf("same %d %d %d\n", a == again, a == dlopen("./liba.so", RTLD_NOW | RTLD_NOLOAD), a == dlopen("liba.so", RTLD_NOW));
	int (*twice)(int) = (int (*)(int))dlsym(a, "twice"), (*called)(void) = (int (*)(void))dlsym(a, "called");
	int *counter = dlsym(a, "counter"), *own = dlsym(a, "own");
	const char **words = dlsym(a, "words");
	printf("%d %d %s\n", twice(10), *own, words[1]);
	*counter = 7;
	printf("%d %d %d\n", twice(10), *own, called());
	/* By another type than the function's: integers are in registers. */
	int (*narrow)(int, int) = (int (*)(int, int))dlsym(a, "wide");
	printf("%d\n", narrow(40, 2));
	printf("%d %d\n", dlsym(a, "calls") == NULL, dlsym(a, "nothing") == NULL);
	Dl_info info;
	printf("%d %s %d\n", dladdr(dlsym(a, "twice"), &info) != 0, info.dli_sname, info.dli_saddr == dlsym(a, "twice"));
	printf("%s\n", strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') : info.dli_fname);
	printf("%d %s\n", dladdr((char *)counter + 1, &info) != 0, info.dli_sname);
	printf("%d %d\n", dladdr(&info, &info) != 0, dlclose(a));
	printf("after %d %d\n", twice(1), called());
	return 0;
}
