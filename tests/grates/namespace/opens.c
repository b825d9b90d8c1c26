/* opens PATH...: opens each and closes it, whether it is there or not. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		close(open(argv[i], O_RDONLY));
	return 0;
}
