// opens a
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
int level = 20;
int offered(int x) { return x + 2; }
static int not_offered(void) { return 3; }
int main(void)
{
	void *a = dlopen("./liba.so", RTLD_NOW), *self = dlopen(NULL, RTLD_NOW);
	if (!a)
		return puts(dlerror()) < 0;
	int *(*asks)(void) = (int *(*)(void))dlsym(a, "asks");
	printf("%d %d\n", asks() == &level, level);
	printf("%d %d\n", dlsym(self, "offered") == (void *)offered, dlsym(RTLD_DEFAULT, "level") == &level);
	printf("%d %d %d\n", dlsym(self, "not_offered") == NULL, dlsym(self, "asks") == NULL, not_offered());
	size_t (*length)(const char *) = (size_t (*)(const char *))dlsym(RTLD_DEFAULT, "strlen");
	printf("%d\n", length == NULL ? -1 : (int)(length("four") + strlen("two")));
	return 0;
}
