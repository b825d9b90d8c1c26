/* Sixteen threads against a policy that lets them change `rw` and nothing else: some swap
 * directories, links, descriptors and the bytes of paths, the others use them meanwhile. The caller
 * checks that nothing outside of `rw` has changed. Prints how often the attackers' calls succeeded,
 * which they may, in `rw`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ROUNDS   150
#define EXCHANGE 2

static atomic_int attackers = 8;
static atomic_long successes;
static char flipping[64] = "rw/f";
static int swapped, file; /* descriptor numbers whose files change */
static int inside, outside, inner, outer;

static void count(long r)
{
	if (r >= 0)
		successes++;
}

static void done_with(int fd)
{
	count(fd);
	if (fd >= 0)
		close(fd);
}

/* rw/x is a directory, or a link to the one above rw. */
static void *swap_directory(void *arg)
{
	(void)arg;
	while (attackers)
		syscall(SYS_renameat2, AT_FDCWD, "rw/x", AT_FDCWD, "rw/y", EXCHANGE);
	return NULL;
}

/* rw/g is a file, or a link to one that is protected. */
static void *swap_file(void *arg)
{
	(void)arg;
	while (attackers)
		syscall(SYS_renameat2, AT_FDCWD, "rw/g", AT_FDCWD, "rw/h", EXCHANGE);
	return NULL;
}

static void *swap_descriptor(void *arg)
{
	(void)arg;
	while (attackers) {
		dup2(outside, swapped);
		dup2(outer, file);
		dup2(inside, swapped);
		dup2(inner, file);
	}
	return NULL;
}

/* The path is `rw/f` or `d//f`, and all that lies between. */
static void *swap_bytes(void *arg)
{
	(void)arg;
	while (attackers) {
		memcpy((char *)flipping, "d//f", 5);
		__asm__ volatile("" ::: "memory");
		memcpy((char *)flipping, "rw/f", 5);
		__asm__ volatile("" ::: "memory");
	}
	return NULL;
}

static void *working_directory(void *arg)
{
	(void)arg;
	while (attackers) {
		fchdir(inside);
		fchdir(outside);
	}
	return NULL;
}

static void by_names(unsigned i)
{
	struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	char name[64];

	snprintf(name, sizeof name, "rw/x/made%u", i);
	done_with(open(name, O_WRONLY | O_CREAT, 0600));
	count(unlink(name));
	count(mkdir(name, 0700));
	count(rmdir(name));
	count(symlink("a", name));
	count(rename(name, "rw/x/d/moved"));
	count(link("rw/x/f", name));
	count(unlink(name));
	count(truncate("rw/x/f", 1));
	count(chmod("rw/x/f", 0600));
	count(utimensat(AT_FDCWD, "rw/x/f", old, 0));
	count(setxattr("rw/x/f", "user.x", "y", 1, 0));
	done_with(open("rw/g", O_WRONLY | O_TRUNC));
	done_with(open("rw/g", O_RDWR | O_CREAT, 0600));
	count(chmod("rw/g", 0600));
	count(truncate("rw/g", 2));
	count(link("rw/g", "rw/linked"));
	done_with(open("rw/linked", O_WRONLY | O_TRUNC));
	count(unlink("rw/linked"));
}

static void by_bytes(unsigned i)
{
	(void)i;
	done_with(open(flipping, O_WRONLY | O_TRUNC));
	count(chmod(flipping, 0600));
	count(truncate(flipping, 3));
	count(unlink(flipping));
	done_with(open("rw/f", O_WRONLY | O_CREAT, 0600));
}

static void by_descriptors(unsigned i)
{
	char name[64], through[64];

	snprintf(name, sizeof name, "at%u", i);
	done_with(openat(swapped, name, O_WRONLY | O_CREAT, 0600));
	count(unlinkat(swapped, name, 0));
	count(mkdirat(swapped, name, 0700));
	count(unlinkat(swapped, name, AT_REMOVEDIR));
	done_with(openat(swapped, "f", O_WRONLY | O_TRUNC));
	count(fchmodat(swapped, "f", 0600, 0));
	count(fchmod(file, 0600));
	count(fsetxattr(file, "user.x", "y", 1, 0));
	count(futimens(file, NULL));
	snprintf(through, sizeof through, "/proc/self/fd/%d", file);
	done_with(open(through, O_WRONLY | O_TRUNC));
	count(chmod(through, 0600));
	count(truncate(through, 2));
	snprintf(through, sizeof through, "/proc/self/fd/%d/%s", swapped, name);
	done_with(open(through, O_WRONLY | O_CREAT, 0600));
	count(unlink(through));
}

static void by_address(unsigned i)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s%u", i % 2 ? "rw/x/sock" : "sock", i);
	count(bind(s, (struct sockaddr *)&a, sizeof a));
	close(s);
	count(unlink(a.sun_path));
}

static void *attack(void *arg)
{
	static void (*const ways[])(unsigned) = { by_names, by_bytes, by_descriptors, by_address };
	unsigned which = (unsigned)(unsigned long)arg;

	for (unsigned i = 0; i < ROUNDS; i++)
		ways[which % 4](which * ROUNDS + i);
	attackers--;
	return NULL;
}

int main(void)
{
	static void *(*const swappers[])(void *) = {
		swap_directory,
		swap_file,
		swap_descriptor,
		swap_bytes,
		swap_directory,
		swap_file,
		swap_descriptor,
		swap_bytes,
	};
	pthread_t threads[17];
	int top = open(".", O_RDONLY | O_DIRECTORY);

	if (mkdir("rw/x", 0700) || mkdir("rw/x/d", 0700) || symlink("..", "rw/y") || symlink("../f", "rw/h") ||
	    close(open("rw/x/f", O_WRONLY | O_CREAT, 0600)) || close(open("rw/g", O_WRONLY | O_CREAT, 0600)))
		return 1;
	inside = open("rw", O_RDONLY | O_DIRECTORY);
	outside = open(".", O_RDONLY | O_DIRECTORY);
	inner = open("rw/f", O_RDONLY);
	outer = open("f", O_RDONLY);
	swapped = dup(inside);
	file = dup(inner);
	for (unsigned long i = 0; i < 8; i++) {
		if (pthread_create(&threads[i], NULL, swappers[i], NULL) ||
		    pthread_create(&threads[8 + i], NULL, attack, (void *)i))
			return 2;
	}
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	/* Once more with a working directory that moves. */
	attackers = 1;
	pthread_create(&threads[0], NULL, working_directory, NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		done_with(open("f", O_WRONLY | O_TRUNC));
		done_with(open("new", O_WRONLY | O_CREAT, 0600));
		count(unlink("new"));
		count(chmod("f", 0600));
	}
	attackers = 0;
	pthread_join(threads[0], NULL);
	fchdir(top);
	printf("%s\n", successes > ROUNDS ? "some succeeded" : "none succeeded");
	return 0;
}
