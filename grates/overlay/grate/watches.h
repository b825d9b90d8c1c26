/* Directories of which the host says what happens in them. The lock is held. */
#ifndef OVERLAY_WATCHES_H
#define OVERLAY_WATCHES_H

#include "under.h"

void watch_with(int watcher); /* an inotify(7) descriptor; before that nothing is watched */
void watch_dir(struct imfs_under *dir);
void watch_forget(struct imfs_under *u);
void watch_ended(struct imfs_under *dir); /* the host has ended it */
int watch_room(void); /* above all numbers of watches */
struct imfs_under *watch_of(int number); /* NULL: none has that number */

#endif
