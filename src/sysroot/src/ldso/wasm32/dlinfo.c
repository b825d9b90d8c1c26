/* dlinfo: libraries of a cage have no addresses of their own, and so no list of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include "dynlink.h"
#include "libraries.h"

int dlinfo(void *handle, int request, void *result)
{
	(void)result;
	if (__lind_is_handle(handle))
		__dl_seterr("Unsupported request %d", request);
	return -1;
}
