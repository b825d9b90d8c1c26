/* fork: what the child has of its parent, what is its own, what both share; from deep calls, loops,
 * switches and pointers. */
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int global = 1;
static _Thread_local int local = 2;

static int ended(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A child whose checks count for the parent. */
static void child_done(void)
{
	fflush(stdout);
	_exit(check_failures ? 1 : 0);
}

static void memory(void)
{
	char on_stack[5000], *heap = malloc(300000);
	char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *locked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid(), pid;

	NEED(heap && shared != MAP_FAILED && locked != MAP_FAILED);
	memset(on_stack, 's', sizeof on_stack);
	memset(heap, 'h', 300000);
	strcpy(locked, "locked");
	CHECK_EQ(mprotect(locked, 4096, PROT_READ), 0);
	strcpy(shared, "from the parent");
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		CHECK(getpid() != parent);
		CHECK_EQ(getppid(), parent);
		CHECK_EQ(global, 1);
		CHECK_EQ(local, 2);
		for (size_t i = 0; i < sizeof on_stack; i++)
			NEED(on_stack[i] == 's');
		for (size_t i = 0; i < 300000; i++)
			NEED(heap[i] == 'h');
		CHECK_STR(locked, "locked");
		CHECK_STR(shared, "from the parent");
		strcpy(shared + 4096, "from the child");
		global = 10;
		local = 20;
		memset(on_stack, 'x', sizeof on_stack);
		memset(heap, 'x', 300000);
		free(malloc(100000));
		child_done();
	}
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(global, 1);
	CHECK_EQ(local, 2);
	CHECK_EQ(on_stack[4999], 's');
	CHECK_EQ(heap[299999], 'h');
	CHECK_STR(shared + 4096, "from the child");
	munmap(shared, 8192);
	munmap(locked, 4096);
	free(heap);
}

static void files(void)
{
	int fd = check_file("file", "0123456789"), pipes[2];
	char text[16] = "";
	pid_t pid;

	NEED(pipe(pipes) == 0);
	CHECK_EQ(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		/* One offset for both, and flags of its own. */
		CHECK_EQ(lseek(fd, 4, SEEK_SET), 4);
		CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
		close(pipes[0]);
		CHECK_EQ(write(pipes[1], "child", 5), 5);
		close(fd);
		CHECK_EQ(chdir("/"), 0);
		umask(0777);
		child_done();
	}
	close(pipes[1]);
	CHECK_EQ(read(pipes[0], text, 15), 5);
	CHECK_STR(text, "child");
	CHECK_EQ(read(pipes[0], text, 15), 0);
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
	CHECK(umask(022) != 0777);
	CHECK_EQ(access("file", F_OK), 0);
	close(fd);
	close(pipes[0]);
	unlink("file");
}

/* Sums what every process of a tree of forks finds, through exit statuses. */
static int tree(int depth)
{
	int sum = 1;

	if (depth == 0)
		return sum;
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		NEED(pid >= 0);
		if (pid == 0)
			_exit(tree(depth - 1));
		sum += ended(pid);
	}
	return sum;
}

static int recursive(int n, double d, long long l)
{
	int array[8];

	for (int i = 0; i < 8; i++)
		array[i] = n + i;
	if (n == 0) {
		pid_t pid = fork();

		NEED(pid >= 0);
		return pid ? ended(pid) : 100;
	}
	int result = recursive(n - 1, d + 0.5, l * 3 + 1);

	for (int i = 0; i < 8; i++)
		NEED(array[i] == n + i);
	NEED(d == (50 - n) * 0.5);
	NEED(l >= 0 || l < 0);
	return result;
}

static int by_pointer(int a, ...)
{
	va_list ap;
	int sum = a;
	pid_t pid;

	va_start(ap, a);
	sum += va_arg(ap, int);
	pid = fork();
	NEED(pid >= 0);
	sum += (int)va_arg(ap, double);
	sum += (int)va_arg(ap, long long);
	va_end(ap);
	if (pid == 0)
		_exit(sum);
	return ended(pid) == sum ? sum : -1;
}

static int compare(const void *a, const void *b)
{
	static int forked;

	if (!forked++) {
		pid_t pid = fork();

		NEED(pid >= 0);
		if (pid == 0)
			child_done();
		CHECK_EQ(ended(pid), 0);
	}
	return *(const int *)a - *(const int *)b;
}

static jmp_buf out;

static void jumps(void)
{
	volatile int passed = 0;
	pid_t pid;

	switch (setjmp(out)) {
	case 0:
		pid = fork();
		NEED(pid >= 0);
		passed = 1;
		if (pid == 0)
			longjmp(out, 2);
		CHECK_EQ(ended(pid), 0);
		longjmp(out, 3);
	case 2:
		CHECK_EQ(passed, 1);
		child_done();
	case 3:
		CHECK_EQ(passed, 1);
	}
}

static void loops(void)
{
	int (*volatile function)(int, ...) = by_pointer;
	int numbers[50], i, total = 0;

	CHECK_EQ(function(1, 2, 3.0, 4LL), 10);
	for (i = 0; i < 50; i++)
		numbers[i] = 49 - i;
	qsort(numbers, 50, sizeof *numbers, compare);
	for (i = 0; i < 50; i++)
		CHECK_EQ(numbers[i], i);
	for (i = 0; i < 20; i++) {
		pid_t pid = fork();

		NEED(pid >= 0);
		if (pid == 0)
			break;
		total += ended(pid);
	}
	if (i < 20)
		_exit(i);
	CHECK_EQ(total, 190);
}

/* Buffered text is in both processes. */
static void buffers(void)
{
	FILE *file = fopen("buffered", "w");
	char text[64] = "";
	pid_t pid;

	NEED(file);
	fputs("twice ", file);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		fputs("child ", file);
		fclose(file);
		child_done();
	}
	CHECK_EQ(ended(pid), 0);
	fputs("parent", file);
	fclose(file);
	int fd = open("buffered", O_RDONLY);
	CHECK(read(fd, text, sizeof text - 1) > 0);
	CHECK_STR(text, "twice child twice parent");
	close(fd);
	unlink("buffered");
}

int main(void)
{
	memory();
	files();
	CHECK_EQ(tree(4), 31);
	/* The child goes back through all those frames too. */
	pid_t self = getpid();
	int result = recursive(50, 0, 1);
	if (getpid() != self)
		_exit(result);
	CHECK_EQ(result, 100);
	jumps();
	loops();
	buffers();
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
	return check_done();
}
