/*
 * strain SECONDS MODULE: cages that fork, run programs, start threads, map, open and have modules
 * compiled, all at once and up to the limits. A refusal is fine; "still here" is the last word.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CAGES 6
#define PAGE  4096

static char *self, *module;

static void *waits(void *unused)
{
	usleep(50000);
	return unused;
}

static void start_threads(void)
{
	pthread_t threads[40];
	int n = 0;

	while (n < 40 && !pthread_create(&threads[n], NULL, waits, NULL))
		n++;
	while (n > 0)
		pthread_join(threads[--n], NULL);
}

static void map(void)
{
	char *at = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	for (int i = 0; i < 500; i += 2)
		if (!mprotect(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE))
			at[i * PAGE] = 1;
	munmap(at, 64 << 20);
}

static void open_files(void)
{
	int fds[300], n = 0;

	while (n < 297) {
		fds[n] = open("/dev/null", O_RDWR);
		if (fds[n] < 0)
			break;
		n++;
		if (!socketpair(AF_UNIX, SOCK_STREAM, 0, &fds[n]))
			n += 2;
	}
	while (n > 0)
		close(fds[--n]);
}

static void wait_for(pid_t child)
{
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void run(char *program)
{
	char *argv[] = { program, "leaf", NULL };
	pid_t child = fork();

	if (child == 0) {
		execv(program, argv);
		_exit(1);
	}
	wait_for(child);
}

/* The same module with another name in a section that nobody reads is another module. */
static void compile(void)
{
	static unsigned count;
	char name[64], text[1 << 16];
	unsigned char section[10] = { 0, 8, 1, 'x' };
	unsigned mark = (unsigned)getpid() << 12 | count++;
	int in = open(module, O_RDONLY), out;
	ssize_t got;

	snprintf(name, sizeof name, "/tmp/%u.wasm", mark);
	memcpy(section + 4, &mark, sizeof mark);
	out = open(name, O_CREAT | O_WRONLY, 0700);
	while ((got = read(in, text, sizeof text)) > 0)
		if (write(out, text, (size_t)got) != got)
			break;
	got = write(out, section, sizeof section);
	close(in);
	close(out);
	if (got > 0)
		run(name);
	unlink(name);
}

static void nest(int deep)
{
	pid_t child = deep ? fork() : -1;

	if (child == 0) {
		start_threads();
		nest(deep - 1);
		_exit(0);
	}
	wait_for(child);
}

static void strain(time_t end)
{
	srand((unsigned)getpid());
	while (time(NULL) < end) {
		switch (rand() % 6) {
		case 0:
			start_threads();
			break;
		case 1:
			map();
			break;
		case 2:
			open_files();
			break;
		case 3:
			run(self);
			break;
		case 4:
			compile();
			break;
		case 5:
			nest(8);
			break;
		}
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t children[CAGES];
	time_t end;

	if (argc != 3)
		return 0;
	self = argv[0];
	module = argv[2];
	end = time(NULL) + atoi(argv[1]);
	for (int i = 0; i < CAGES; i++)
		if ((children[i] = fork()) == 0)
			strain(end);
	for (int i = 0; i < CAGES; i++)
		wait_for(children[i]);
	puts("still here");
	return 0;
}
