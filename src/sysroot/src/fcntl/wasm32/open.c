/* The mode may be missing, as in many an old program: see varargs.h. */
#include "varargs.h"
#include "../open.c"
