// opens a other
#include <dlfcn.h>
#include <stdio.h>
int shared_inside(void) { return -1; }
int main(void)
{
	static const char *const names[] = { "entry", "second", "state", "shared_inside", "own", "replaceable", "guarded" };
	void *handles[] = { dlopen("./liba.so", RTLD_NOW), dlopen("./libother.so", RTLD_NOW) };
	for (int i = 0; i < 2; i++) {
		if (!handles[i])
			return puts(dlerror()) < 0;
		for (unsigned n = 0; n < sizeof names / sizeof *names; n++)
			printf("%d ", dlsym(handles[i], names[n]) != NULL);
		int (*entry)(void) = (int (*)(void))dlsym(handles[i], "entry");
		printf(": %d ", entry());
		printf("%d\n", entry());
	}
	return 0;
}
