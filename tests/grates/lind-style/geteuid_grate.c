/* Says that everybody is user 10. Its handler has one argument, and its dispatcher knows it: both
 * may be. */
#include <lind_syscall.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static int ten(int cage)
{
	return cage > 0 ? 10 : -1;
}

int pass_fptr_to_wt(uint64_t function, uint64_t grate, uint64_t a1, uint64_t c1, uint64_t a2, uint64_t c2, uint64_t a3,
    uint64_t c3, uint64_t a4, uint64_t c4, uint64_t a5, uint64_t c5, uint64_t a6, uint64_t c6)
{
	int (*f)(int) = (int (*)(int))(uintptr_t)function;

	return f && grate == (uint64_t)getpid() ? f((int)c1) : -1;
}

int main(int argc, char **argv)
{
	int grate = getpid(), status;

	if (argc < 2)
		return 2;
	switch (fork()) {
	case -1:
		perror("fork");
		return 1;
	case 0:
		if (register_handler((uint64_t)getpid(), 107, (uint64_t)grate, (uint64_t)(uintptr_t)&ten))
			_exit(3);
		execv(argv[1], &argv[1]);
		perror(argv[1]);
		_exit(127);
	}
	while (wait(&status) > 0)
		printf("geteuid: status %d\n", WEXITSTATUS(status));
	return 0;
}
