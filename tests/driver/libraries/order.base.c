#include <stdio.h>
static void __attribute__((constructor)) up(void) { puts("base"); }
static void __attribute__((destructor)) down(void) { puts("base ends"); }
int base(void) { return 1; }
