/* comm [PROGRAM]: what lists of processes call this, once it has run PROGRAM in its place. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char name[32];
	ssize_t n;

	if (argc > 1)
		return execl(argv[1], argv[1], (char *)NULL);
	n = read(open("/proc/self/comm", O_RDONLY), name, sizeof name);
	return n < 1 || write(1, name, (size_t)n) != n;
}
