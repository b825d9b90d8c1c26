// needs base
#include <stdio.h>
int base(void);
static void __attribute__((constructor(300))) second(void) { puts("a 300"); }
static void __attribute__((constructor)) last(void) { printf("a last %d\n", base()); }
static void __attribute__((constructor(200))) first(void) { puts("a 200"); }
static void __attribute__((destructor)) down(void) { puts("a ends"); }
int a(void) { return base() + 1; }
