// needs two one
// opens global late
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int value(void), only_one(void), only_two(void);
void *default_value(void);
int main(void)
{
	printf("%d %d %d\n", value(), only_one(), only_two());
	printf("%d %d\n", dlsym(RTLD_DEFAULT, "value") == (void *)value, default_value() == (void *)value);
	void *two = dlopen("libtwo.so", RTLD_NOW), *one = dlopen("libone.so", RTLD_NOW);
	printf("%d %d\n", dlsym(two, "value") == (void *)value, dlsym(one, "value") == dlsym(RTLD_NEXT, "value"));
	printf("%d\n", dlsym(two, "only_one") == (void *)only_one);
	printf("%d\n", dlopen("libone.so", RTLD_NOW | RTLD_NOLOAD) == one);
	void *global = dlopen("./libglobal.so", RTLD_NOW | RTLD_LOCAL);
	printf("%d %d\n", global != NULL, dlsym(RTLD_DEFAULT, "from_global") == NULL);
	printf("%d\n", dlopen("./libglobal.so", RTLD_NOW | RTLD_GLOBAL) == global);
	printf("%d\n", dlsym(RTLD_DEFAULT, "from_global") == dlsym(global, "from_global"));
	printf("%d\n", dlsym(RTLD_DEFAULT, "value") == (void *)value);
	void *late = dlopen("./liblate.so", RTLD_NOW);
	printf("%d\n", late ? ((int (*)(void))dlsym(late, "late"))() : -1);
	return 0;
}
