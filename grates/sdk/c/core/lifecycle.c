/* The calls of a grate that follows its clients. Apart from clients.c so that the manifest names
 * these calls only in such grates. */
#include <lind/raw.h>
#include "sdk.h"

LIND_FOLLOWS(clone);
LIND_FOLLOWS(spawn);
LIND_FOLLOWS(execve);
LIND_FOLLOWS(execveat);

void lind_follow_births(void) {}

void lind_grate_lifecycle(const struct lind_lifecycle *lifecycle)
{
	lind_hooks_ = lifecycle;
}
