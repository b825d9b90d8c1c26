/* Programs that use things up: what the files of this one share. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME   "resource.tmp"
#define RACERS 16

struct test {
	const char *name;
	void (*run)(void);
};

/* bytes.c, memory.c. Each ends with one that has no name. */
extern const struct test byte_tests[], memory_tests[];

/* memory.c: makes memory with a name, and runs what follows. */
void beside(char **argv);

/* The second argument, the program's name, and bytes to write. */
extern long amount;
extern const char *self;
extern char data[1 << 16];

void say(const char *what, long n);
