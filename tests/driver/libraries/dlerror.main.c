// opens
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static void *other(void *arg)
{
	(void)arg;
	printf("in another thread %d\n", dlerror() == NULL);
	return NULL;
}
static void said(const char *what, void *result, const char *part)
{
	const char *error = dlerror();
	printf("%s: %d %d %d\n", what, result == NULL, error != NULL && strstr(error, part) != NULL, dlerror() == NULL);
}
int main(void)
{
	pthread_t thread;
	printf("at first %d\n", dlerror() == NULL);
	said("no file", dlopen("./libnone.so", RTLD_NOW), "libnone.so");
	said("nowhere", dlopen("libnone.so", RTLD_NOW), "libnone.so");
	FILE *file = fopen("libtext.so", "w");
	fputs("not a library\n", file);
	fclose(file);
	said("no library", dlopen("./libtext.so", RTLD_NOW), "libtext.so");
	file = fopen("libtext.so", "w");
	fputs("!<arch>\nlind.library/   0           0     0     644     99999999999`\ndigest ", file);
	fclose(file);
	said("cut off", dlopen("./libtext.so", RTLD_NOW), "libtext.so");
	remove("libtext.so");
	said("a directory", dlopen("./", RTLD_NOW), "./");
	said("no mode", dlopen("./libnone.so", 0), "");
	said("no symbol", dlsym(RTLD_DEFAULT, "nothing_of_this_name"), "nothing_of_this_name");
	void *self = dlopen(NULL, RTLD_NOW);
	said("none there", dlsym(self, ""), "");
	dlopen("./libnone.so", RTLD_NOW);
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	printf("here %d\n", dlerror() != NULL);
	printf("closed %d\n", dlclose(self));
	return 0;
}
