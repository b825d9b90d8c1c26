/* The files in memory, after the state or the lower directory was changed by somebody who knows of
 * no run. */
#ifndef OVERLAY_RENEW_H
#define OVERLAY_RENEW_H

#include "under.h"

/* Whether all that programs hold can be found again: directories, and files that were not changed
 * here. If not, the path of a file that some program has open, to be freed; NULL for no memory too.
 * The lock is held, and nothing is dirty. */
bool renew_possible(char **held);
/* Reads everything again. `know_root` is for the root. The lock is held. */
void renew(void (*know_root)(void));

#endif
