/* The position that a number from telldir stands for. */
#include <features.h>
#include <sys/types.h>

hidden off_t __dir_position(long);
