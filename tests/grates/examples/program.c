/* Stands for the programs that examples name: says that it ran. */
#include <unistd.h>

int main(void)
{
	return write(1, "ran\n", 4) != 4;
}
