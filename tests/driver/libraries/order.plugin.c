// needs a
#include <dlfcn.h>
#include <stdio.h>
int a(void);
static void __attribute__((constructor)) up(void)
{
	printf("plugin %d, itself %d\n", a(), dlopen("./libplugin.so", RTLD_NOW) != NULL);
}
int plugin(void) { return a() + 1; }
