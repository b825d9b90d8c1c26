/* which.c: whether a file is one of the programs that the rules are about. */
#ifndef WHICH_H
#define WHICH_H

#include <lind/paths.h>
#include <stdbool.h>

const char *add_path(const char *value);
const char *add_hash(const char *value);
bool any_program(void);
/* Takes hold of the files that have the paths at the start. */
void find_programs(void);
bool is_program(const struct lind_place *place);

#endif
