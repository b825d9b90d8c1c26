/* Calls that take paths. */
#ifndef NAMESPACE_PATHS_H
#define NAMESPACE_PATHS_H

#include "tables.h"

const char *set_by_text(const char *value);
int64_t on_path(const struct lind_call *c);
int64_t on_chdir(const struct lind_call *c);
int64_t on_fchdir(const struct lind_call *c);
int64_t on_getcwd(const struct lind_call *c);

#endif
