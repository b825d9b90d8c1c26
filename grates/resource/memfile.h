/* Files that are memory. */
#ifndef RESOURCE_MEMFILE_H
#define RESOURCE_MEMFILE_H

#include "tables.h"

void memory_files_find(void); /* before clients run */
void memory_files_copied(struct client *child, struct client *parent);
void memory_files_leave(struct client *c);
void memory_files_handed_on(void); /* grates behind this one may do that */

extern const struct lind_handler memory_file_handlers[];
extern const size_t memory_file_handler_count;

#endif
