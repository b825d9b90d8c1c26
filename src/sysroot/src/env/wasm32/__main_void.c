/* Clang names main by its parameters: __main_void for none, __main_argc_argv for two. A program
 * that takes two, or three, gets this __main_void. */
#include <features.h>

extern hidden int __lind_argc;
extern hidden char **__lind_argv;

int __main_argc_argv(int, char **);

int __main_void(void)
{
	return __main_argc_argv(__lind_argc, __lind_argv);
}
