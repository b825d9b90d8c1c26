/* Memory that cages share, where each has a limit of its own. */
#ifndef RESOURCE_SHARED_H
#define RESOURCE_SHARED_H

#include "tables.h"

/* Has calls that make such memory handled. */
void shared_begins(void);

#endif
