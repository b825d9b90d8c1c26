// needs a
// opens plugin
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int a(void);
static void __attribute__((constructor(101))) first(void) { puts("main 101"); }
static void __attribute__((constructor)) last(void) { puts("main"); }
static void __attribute__((destructor)) down(void) { puts("main ends"); }
static void at_exit(void) { puts("exit"); }
int main(void)
{
	atexit(at_exit);
	printf("%d\n", a());
	for (int i = 0; i < 2; i++) {
		void *plugin = dlopen("./libplugin.so", RTLD_NOW);
		printf("%d\n", plugin ? ((int (*)(void))dlsym(plugin, "plugin"))() : -1);
	}
	return 0;
}
