/* Ids belong to the cage, not to a thread of it: one call changes them for all. */
#include <unistd.h>
#include "syscall.h"
#include "libc.h"

int __setxid(int nr, int id, int eid, int sid)
{
	return __syscall_ret(__syscall(nr, id, eid, sid));
}
