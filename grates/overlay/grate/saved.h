/* The state that this run changes, as its files share it. */
#ifndef OVERLAY_SAVED_H
#define OVERLAY_SAVED_H

#include "../state/store.h"

extern struct store *store; /* NULL: what is changed is gone at the end */

void store_enter(void); /* the store's mutex; the lock is held */
void store_leave(void);
/* The state did not take something, and gets no more; returns the errno for it. */
int store_breaks(int error, const char *what);
int store_broken(void); /* that errno, or 0 */

#endif
