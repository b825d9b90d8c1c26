/* The files that a state consists of. */
#ifndef OVERLAY_STATE_FILES_H
#define OVERLAY_STATE_FILES_H

#include <stdbool.h>

struct state_files {
	int db, wal;
	int data; /* the directory of data files; -1: the state is one file */
};

/* Opens those that an option names, and makes what is missing if `make`. 0, or the negative of
 * an errno; -ENOTEMPTY: a directory of something else. */
int state_files_open(const char *upper, bool make, struct state_files *files);

#endif
