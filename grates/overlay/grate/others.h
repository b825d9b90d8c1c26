/* Changes that others make in the lower directory. */
#ifndef OVERLAY_OTHERS_H
#define OVERLAY_OTHERS_H

void others_begin(void); /* no lock is held */

#endif
