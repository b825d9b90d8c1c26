// opens
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	static const char *const files[] = { "./one/libsame.so", "./two/libsame.so" };
	void *handles[2];
	for (int i = 0; i < 2; i++) {
		handles[i] = dlopen(files[i], RTLD_NOW);
		if (!handles[i])
			return puts(dlerror()) < 0;
		int (*same)(void) = (int (*)(void))dlsym(handles[i], "same");
		printf("%d ", same());
		printf("%d %d\n", same(), *(int *)dlsym(handles[i], "extra"));
	}
	printf("%d\n", handles[0] == handles[1]);
	return 0;
}
