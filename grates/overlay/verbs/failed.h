/* The end of a verb that has failed. */
#ifndef OVERLAY_VERB_FAILED_H
#define OVERLAY_VERB_FAILED_H

#include "../state/store.h"

#define STRANGE 125 /* the exit status for what is not an answer */

/* Says what the store did not do; the exit status for that. */
int verb_failed(const struct store *store, int error);

#endif
