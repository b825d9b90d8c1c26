/* From memory to the state. */
#ifndef OVERLAY_FLUSH_H
#define OVERLAY_FLUSH_H

#include <stdbool.h>

int flush_some(void); /* the lock is held: makes what is dirty clean */
int flush_all(bool durable); /* no lock is held */
int flush_begin(void); /* from now on, changes that nobody has asked to be kept are brought to the state now and then */

#endif
