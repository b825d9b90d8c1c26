/* dlclose: libraries stay, as in musl. */
#include <dlfcn.h>
#include "libraries.h"

int dlclose(void *handle)
{
	return __lind_is_handle(handle) ? 0 : -1;
}
