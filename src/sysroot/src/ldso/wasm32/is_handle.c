/* Which pointers are handles of dlopen. musl's own function for that is weak, and says none. */
#include "dynlink.h"
#include "libraries.h"

int __lind_is_handle(void *handle)
{
	if (__lind_libraries) {
		if (handle == &__lind_libc || handle == __lind_libraries[0])
			return 1;
		for (struct lind_library *const *p = __lind_libraries; *p; p++)
			if (handle == *p && (*p)->handles)
				return 1;
	}
	__dl_seterr("not a handle of dlopen: %p", handle);
	return 0;
}
