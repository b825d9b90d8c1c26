/* argv: a file, and a program. The status is 0 if neither can be read. Without them it is that
 * program, and exits with 7. */
#include <fcntl.h>
#include <unistd.h>
#include "../check.h"

int main(int argc, char **argv)
{
	char *words[2] = { 0 };

	if (argc == 1)
		return 7;
	IS(argc, 3);
	words[0] = argv[2];
	FAILS(open(argv[1], O_RDONLY), EACCES);
	FAILS(execv(argv[2], words), EACCES);
	return wrong;
}
