/* Ends with 3, and leaves a child that runs on. */
#include <unistd.h>

int main(void)
{
	if (!fork())
		for (;;)
			pause();
	return 3;
}
