/* show.c: prints records, one line each. */
#ifndef SHOW_H
#define SHOW_H

#include <stddef.h>
#include <stdint.h>

/* `bytes` are well-formed. */
void show_records(const uint8_t *bytes, size_t size, uint64_t first);

#endif
