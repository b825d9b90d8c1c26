/* Every way to what is in home/.ssh, and to the file beside it. Prints the errno of each that does
 * not end as its argument says: with EACCES for "denied", or without an error. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int wanted;

static void is(const char *way, long result)
{
	int got = result < 0 ? errno : 0;

	if (got != wanted)
		printf("%s: %s, not %s\n", way, strerror(got), strerror(wanted));
	if (result > 2 && !strstr(way, "exec"))
		close((int)result);
}

static int through_path(const char *file)
{
	char name[64];
	int fd = open(file, O_PATH), again;

	if (fd < 0)
		return -1;
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	again = open(name, O_RDONLY);
	close(fd);
	return again;
}

static int from(const char *directory, const char *file)
{
	int at = open(directory, O_PATH | O_DIRECTORY), fd;

	if (at < 0)
		return -1;
	fd = openat(at, file, O_RDONLY);
	close(at);
	return fd;
}

static long executed(const char *file)
{
	pid_t child = fork();
	int status;

	if (!child) {
		execl(file, file, (char *)NULL);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	/* The interpreter of the script is missing, which is found out later. */
	errno = WEXITSTATUS(status) == ENOENT ? 0 : WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static void file_ways(const char *directory, const char *file)
{
	char path[256], text[256];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", directory, file);
	is("open", open(path, O_RDONLY));
	is("open to change", open(path, O_RDWR));
	snprintf(text, sizeof text, "work/../%s/./%s", directory, file);
	is("open by a longer way", open(text, O_RDONLY));
	snprintf(text, sizeof text, "links/%s", file);
	is("open through a linked directory", open(text, O_RDONLY));
	is("open a descriptor again", through_path(path));
	is("open from a directory", from(directory, file));
	if (!chdir(directory)) {
		is("open in the working directory", open(file, O_RDONLY));
		snprintf(text, sizeof text, "/proc/self/cwd/%s", file);
		is("open by /proc/self/cwd", open(text, O_RDONLY));
		if (chdir("/grates-test/tree"))
			abort();
	}
	is("access", access(path, R_OK));
	is("execute", executed(path));
	is("link", link(path, "work/linked"));
	unlink("work/linked");
	is("rename", rename(path, "work/renamed"));
	rename("work/renamed", path);
	if (stat(path, &st) || readlink("links", text, sizeof text) < 0)
		printf("attributes: %s\n", strerror(errno));
	wanted = 0;
	is("write", open(path, O_WRONLY));
}

int main(int argc, char **argv)
{
	bool denied = argc > 1 && !strcmp(argv[1], "denied");
	const char *directory = denied ? "home/.ssh" : "home/other";

	unlink("links");
	if (symlink(directory, "links"))
		abort();
	wanted = denied ? EACCES : 0;
	is("list", open(directory, O_RDONLY | O_DIRECTORY));
	is("move the directory", rename(directory, "work/moved"));
	rename("work/moved", directory);
	if (denied) {
		is("move what is above", rename("home", "moved"));
		is("exchange what is above", syscall(SYS_renameat2, AT_FDCWD, "work", AT_FDCWD, "home", 2));
	}
	file_ways(directory, "key");
	return 0;
}
