/* meanwhile: in the world of mounts.c. `race N` opens what leads up, again and again, while another
 * process renames on the way, and counts how
   often that led out; `litter` leaves behind what is hard to remove. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opens and closes. */
static int opened(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags, 0644);

	return fd < 0 ? -1 : close(fd);
}

static void rename_forever(void)
{
	for (;;) {
		rename("/a/p/x", "/a/x");
		rename("/a/x", "/a/p/x");
		rename("/in/d", "/a/away");
		rename("/a/away", "/in/d");
		unlink("/a/p/turn");
		symlink("../..", "/a/p/turn");
		unlink("/a/p/turn");
		mkdir("/a/p/turn", 0755);
		rmdir("/a/p/turn");
	}
}

/* How often a look-up that must stay in a directory led above it. */
static int left_scope(int dir)
{
	struct open_how how = { .flags = O_PATH, .resolve = RESOLVE_BENEATH };
	struct stat above, found;
	int count = 0;

	stat("/a", &above);
	for (int i = 0; i < 25; i++) {
		int fd = (int)syscall(SYS_openat2, (long)dir, "x/..", &how, (long)sizeof how);

		if (fd < 0)
			continue;
		count += !fstat(fd, &found) && found.st_ino == above.st_ino;
		close(fd);
	}
	return count;
}

/* Leaves behind what is hard to remove. */
static int litter(void)
{
	mkdir("/tmp/closed", 0755);
	close(creat("/tmp/closed/file", 0644));
	chmod("/tmp/closed", 0);
	chdir("/tmp");
	for (int i = 0; i < 1200; i++)
		if (mkdir("deep", 0755) || chdir("deep"))
			return 1;
	return 7;
}

static int race(int rounds)
{
	static const char *const paths[] = { "../secret", "../../secret", "../../../secret", "../../../../secret" };
	static const char *const absolute[] = { "/a/p/x/../../../secret", "/a/p/x/../../secret", "/a/p/turn/secret",
		"/a/p/turn/../secret", "/a/p/turn/../../secret", "/in/d/../../secret", "/in/d/../secret" };
	int found = 0, inside, moved, scope;
	pid_t child;

	mkdir("/a/p", 0755);
	mkdir("/a/p/x", 0755);
	inside = open("/a/p/x", O_PATH);
	moved = open("/in/d", O_PATH);
	scope = open("/a/p", O_PATH | O_DIRECTORY);
	child = fork();
	if (!child)
		rename_forever();
	for (int i = 0; i < rounds; i++) {
		for (size_t j = 0; j < sizeof paths / sizeof *paths; j++)
			found += !opened(inside, paths[j], O_RDONLY) + !opened(moved, paths[j], O_RDONLY);
		for (size_t j = 0; j < sizeof absolute / sizeof *absolute; j++)
			found += !opened(AT_FDCWD, absolute[j], O_RDONLY);
		found += left_scope(scope);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("escapes %d\n", found);
	return 7;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "race"))
		return race(atoi(argv[2]));
	return litter();
}
