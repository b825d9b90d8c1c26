/* Files that are memory. */
#ifndef RESOURCE_MEMFILE_H
#define RESOURCE_MEMFILE_H

#include "tables.h"

/* Has calls that make them longer handled. */
void memory_files_begin(void);
void memory_files_copied(struct client *child, struct client *parent);
void memory_files_leave(struct client *c);
void memory_files_handed_on(void); /* grates behind this one may do that */

#endif
