// opens a
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int use(void)
{
	void *a = dlopen("./liba.so", RTLD_NOW);
	int (*forked)(int) = a ? (int (*)(int))dlsym(a, "forked") : NULL;
	return forked ? forked(1) : -1;
}
static int in_child(int (*work)(void))
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(work());
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static int child_of_child(void) { return in_child(use); }
int main(void)
{
	printf("opened in a child: %d\n", in_child(use));
	printf("in its child: %d\n", in_child(child_of_child));
	printf("here: %d\n", use());
	printf("opened before: %d\n", in_child(use));
	printf("and then: %d\n", in_child(child_of_child));
	return 0;
}
