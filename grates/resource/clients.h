/* The life of clients from birth to end. */
#ifndef RESOURCE_CLIENTS_H
#define RESOURCE_CLIENTS_H

#include "tables.h"

extern const struct lind_lifecycle lifecycle;

#endif
