/* Cages and threads. */
#ifndef RESOURCE_PROCESS_H
#define RESOURCE_PROCESS_H

#include "tables.h"

extern const struct lind_handler process_handlers[];
extern const size_t process_handler_count;

#endif
