/* Behind shapes_grate: each call comes back with what its handler answers. */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failures;

static void want(const char *what, long got, long wanted)
{
	if (got != wanted && ++failures)
		printf("%s: %ld, not %ld\n", what, got, wanted);
}

int main(void)
{
	long r = syscall(2000);

	if (r <= 100)
		printf("int(int): %ld\n", r), failures++;
	want("int(uint64_t)", syscall(2001), 201);
	want("int(void)", syscall(2002), 202);
	want("off_t(...)", syscall(2003, 1000, 0, 0, 0, 0, 234), 1234);
	want("long of three", syscall(2004, 7), 204);
	want("an errno of 64 bits", syscall(2005, 1), -1);
	want("errno", errno, EXDEV);
	want("void *", syscall(2007, 0, 0, 0x7ffffff0), 0x7ffffff0);
	want("nobody's number", syscall(2008), -1);
	want("errno", errno, ENOSYS);
	return failures != 0;
}
