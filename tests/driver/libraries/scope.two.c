// needs one
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
int only_one(void);
/* Stands before one's, and calls it. */
int value(void)
{
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "value");
	return next ? next() + 100 : -1;
}
int only_two(void) { return only_one() + 2; }
void *default_value(void) { return dlsym(RTLD_DEFAULT, "value"); }
