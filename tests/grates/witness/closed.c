/* closed DIRECTORY: opens until that fails with EIO; then makes a directory, which must not be
 * made. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char made[256];
	int i = 0, r;

	(void)argc;
	snprintf(made, sizeof made, "%s/made", argv[1]);
	while (i < 1000000 && open("/none/of/these", O_RDONLY) < 0 && errno != EIO)
		i++;
	printf("broken %d\n", i < 1000000);
	r = mkdir(made, 0700);
	printf("mkdir %d %d\n", r, errno == EIO);
	printf("there %d\n", access(made, F_OK) == 0);
	return 0;
}
