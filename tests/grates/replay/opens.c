#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A mapping that is shared, and is written to after mprotect in a child alone. */
int main(void)
{
	int *shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (!fork()) {
		mprotect(shared, 4096, PROT_READ | PROT_WRITE);
		_exit(*shared = 7);
	}
	wait(NULL);
	printf("shared %d\n", *shared);
	return 0;
}
