/* Descriptor 1 and its copies. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int null = open("/dev/null", O_WRONLY);

	write(1, "one", 3);
	write(null, "null", 4);
	dup2(1, 9);
	write(9, "nine", 4);
	if (!fork()) {
		write(1, "forked", 6);
		_exit(0);
	}
	wait(NULL);
	dup2(null, 9);
	write(9, "not", 3);
	close(1);
	dup2(null, 1);
	write(1, "nor", 3);
	return 0;
}
