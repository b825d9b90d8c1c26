/* A main with three parameters keeps its name. */
#include <features.h>

extern hidden char **__lind_envp;

int main_with_envp(int, char **, char **) __asm__("main");

int __main_argc_argv(int argc, char **argv)
{
	return main_with_envp(argc, argv, __lind_envp);
}
