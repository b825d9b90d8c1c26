/* Memory that cages share, where each has a limit of its own. */
#ifndef RESOURCE_SHARED_H
#define RESOURCE_SHARED_H

#include "tables.h"

void shared_find(void); /* before clients run */
extern const struct lind_handler shared_handlers[];
extern const size_t shared_handler_count;

#endif
