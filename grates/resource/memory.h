/* The memory that the programs have mapped. */
#ifndef RESOURCE_MEMORY_H
#define RESOURCE_MEMORY_H

#include "tables.h"

struct space *space_new(void);
struct space *space_share(struct space *space);
void space_drop(struct space *space);
/* Looks at what is mapped and counts it. */
void memory_look(struct client *c);
/* A client's memory goes with it. */
void memory_leave(struct client *c);
/* A child that was forked holds `bytes`, which were reserved of the tree. */
void memory_copied(struct client *child, uint64_t bytes);

/* The processor time that a cage has used. */
uint64_t cpu_of(uint64_t cage);

/* Has calls that map memory handled. */
void memory_begins(void);

#endif
