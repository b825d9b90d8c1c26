/* The watcher, and what it says at the end. */
#ifndef RESOURCE_WATCH_H
#define RESOURCE_WATCH_H

#include "tables.h"

void watch_begins(void);
extern uint64_t cpu_ended;
const char *set_learn(const char *path);
void report(int status);

#endif
