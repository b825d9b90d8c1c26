/* The mode may be missing, as in many old programs: see varargs.h. */
#include "varargs.h"
#include "../open.c"
