/* The child has a copy of the memory, as after fork. */
#include <unistd.h>

pid_t vfork(void)
{
	return _Fork();
}
