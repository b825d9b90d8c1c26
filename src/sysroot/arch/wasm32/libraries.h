/* Shared by the functions of dlfcn.h. */
#include <features.h>
#include <lind_libraries.h>

/* Programs that are linked without libraries have no table. */
extern weak struct lind_library *const __lind_libraries[];
extern weak struct lind_library __lind_libc;

/* The libraries opened with RTLD_GLOBAL, in that order. The list only grows, at its end. */
extern hidden struct lind_library *volatile __lind_global;
/* The library whose digest or name is in a file or was asked for, or null with the error set. */
hidden struct lind_library *__lind_find_library(const char *);
/* Whether it is a handle of dlopen; sets the error if not. */
hidden int __lind_is_handle(void *);
/* The address of a symbol of one library, or null. */
hidden void *__lind_symbol_in(const struct lind_library *, const char *);
