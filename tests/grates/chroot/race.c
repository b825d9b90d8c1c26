/* Sixteen threads that try to see a file called `secret`, outside of the root or hidden in it,
 * while they swap links, directories, descriptors, working directories and the bytes of paths.
 * argv: the paths to try. Prints whether one was seen. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS   200
#define EXCHANGE 2

static atomic_int attackers = 8;
static atomic_int leaked, opened;
static char flipping[64] = "/f";
static int swapped, top, deep;
static char **paths;
static int count;

static void look(int fd)
{
	char text[64] = "";

	if (fd < 0)
		return;
	opened++;
	if (read(fd, text, 63) > 0 && strstr(text, "a secret"))
		leaked++;
	if (write(fd, "x", 1) > 0)
		lseek(fd, 0, SEEK_SET);
	close(fd);
}

static void *swap_names(void *arg)
{
	(void)arg;
	while (attackers) {
		syscall(SYS_renameat2, AT_FDCWD, "/w/a", AT_FDCWD, "/w/b", EXCHANGE);
		syscall(SYS_renameat2, AT_FDCWD, "/w/x/y", AT_FDCWD, "/w/z", EXCHANGE);
	}
	return NULL;
}

/* A directory goes up and down while others climb out of it. */
static void *move_directories(void *arg)
{
	(void)arg;
	while (attackers) {
		rename("/w/1/2/3", "/3");
		rename("/3", "/w/1/2/3");
	}
	return NULL;
}

static void *swap_descriptor(void *arg)
{
	(void)arg;
	while (attackers) {
		dup2(top, swapped);
		dup2(deep, swapped);
	}
	return NULL;
}

static void *swap_bytes(void *arg)
{
	const char *to = count ? paths[0] : "/../secret";

	(void)arg;
	while (attackers) {
		memcpy(flipping, "/f", 3);
		__asm__ volatile("" ::: "memory");
		memcpy(flipping, to, strlen(to) + 1);
		__asm__ volatile("" ::: "memory");
	}
	return NULL;
}

static void *attack(void *arg)
{
	static const char *const ways[] = {
		"/w/a/secret",
		"/w/a/../secret",
		"/w/x/y/../../../secret",
		"/w/1/2/3/../../../../secret",
		"/3/../../secret",
		"/w/a/w/a/secret",
		"/w/x/y/secret",
		"/proc/self/cwd/../../../../secret",
	};
	char through[64];

	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++)
			look(open(ways[way], O_RDWR));
		for (int way = 0; way < count; way++)
			look(open(paths[way], O_RDWR));
		look(open(flipping, O_RDWR));
		look(openat(swapped, "../secret", O_RDWR));
		look(openat(swapped, "../../../../secret", O_RDWR));
		snprintf(through, sizeof through, "/proc/self/fd/%d/../secret", swapped);
		look(open(through, O_RDWR));
		if ((unsigned long)arg % 4 == 0) {
			chdir("/w/1/2/3");
			look(open("../../../../secret", O_RDWR));
			chdir("..");
			look(open("../../../secret", O_RDWR));
			fchdir(swapped);
			look(open("../secret", O_RDWR));
		}
	}
	attackers--;
	return NULL;
}

int main(int argc, char **argv)
{
	static void *(*const swappers[])(void *) = { swap_names, move_directories, swap_descriptor, swap_bytes };
	pthread_t threads[16];

	paths = argv + 1;
	count = argc - 1;
	if (mkdir("/w", 0700) || mkdir("/w/a", 0700) || symlink("../..", "/w/b") || mkdir("/w/x", 0700) ||
	    mkdir("/w/x/y", 0700) || symlink("../../..", "/w/z") || mkdir("/w/1", 0700) || mkdir("/w/1/2", 0700) ||
	    mkdir("/w/1/2/3", 0700))
		return 1;
	top = open("/", O_RDONLY | O_DIRECTORY);
	deep = open("/w/1/2/3", O_PATH | O_DIRECTORY);
	swapped = dup(top);
	for (unsigned long i = 0; i < 16; i++)
		if (pthread_create(&threads[i], NULL, i % 2 ? swappers[i / 2 % 4] : attack, (void *)i))
			return 2;
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	printf("%s, %s\n", leaked ? "seen" : "not seen", opened > ROUNDS ? "files were" : "no files were");
	return 0;
}
