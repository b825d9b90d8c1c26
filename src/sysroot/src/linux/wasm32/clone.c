/* The optional argument may be missing: see varargs.h. */
#include "varargs.h"
#include "../clone.c"
