/* The functions that the file system in memory asks. */
#ifndef OVERLAY_BELOW_H
#define OVERLAY_BELOW_H

#include "../../lib/memfs/memfs.h"

extern const struct imfs_below overlay_below;

#endif
