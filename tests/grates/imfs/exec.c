/* Programs and scripts that are files of imfs. /in/self is this program. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int failures;

#define WANT(got, wanted) \
	do { \
		long g_ = (long)(got), w_ = (long)(wanted); \
		if (g_ != w_) \
			printf("%d: %s: %ld, not %ld\n", __LINE__, #got, g_, w_), failures++; \
	} while (0)

static void file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	WANT(write(fd, text, strlen(text)), strlen(text));
	WANT(fchmod(fd, mode), 0);
	close(fd);
}

/* Its exit status, or the negative of an errno. */
static int run(const char *path, char **argv)
{
	int status;
	pid_t pid;
	int r = posix_spawn(&pid, path, NULL, NULL, argv, environ);

	if (r)
		return -r;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int child(int argc, char **argv)
{
	char all[400] = "";

	for (int i = 1; i < argc; i++)
		strcat(strcat(all, argv[i]), ";");
	if (fcntl(50, F_GETFD) != -1 || fcntl(51, F_GETFD) != 0)
		return 9;
	if (!strcmp(all, "plain;a b;"))
		return 20;
	if (!strcmp(all, "an option;/tmp/script;x;y;"))
		return 21;
	if (!strcmp(all, "/tmp/script;x;y;"))
		return 22;
	if (!strcmp(all, "an option;/tmp/outer;z;"))
		return 23;
	if (!strcmp(all, "an option;/tmp/script;/tmp/outer;z;"))
		return 24;
	printf("%s\n", all);
	return 8;
}

int main(int argc, char **argv)
{
	char *plain[] = { "self", "plain", "a b", NULL }, *words[] = { "dropped", "x", "y", NULL },
	     *z[] = { "dropped", "z", NULL };
	int fd, status;

	if (argc > 1)
		return child(argc, argv);
	dup2(open("/in/self", O_RDONLY), 50);
	fcntl(50, F_SETFD, FD_CLOEXEC);
	dup2(50, 51);
	WANT(run("/in/self", plain), 20);
	WANT(chdir("/in"), 0);
	WANT(run("./self", plain), 20);
	file("/tmp/script", "#! /in/self an option \nrest", 0700);
	WANT(run("/tmp/script", words), 21);
	file("/tmp/script", "#!self", 0700);
	WANT(run("/tmp/script", words), 22);
	file("/tmp/script", "#!/in/self an option\n", 0700);
	file("/tmp/outer", "#!/tmp/script", 0755);
	WANT(run("/tmp/outer", z), 24);
	file("/tmp/outer", "#!/tmp/outer\n", 0755);
	WANT(run("/tmp/outer", z), -ELOOP);
	file("/tmp/outer", "#!/none/such\n", 0755);
	WANT(run("/tmp/outer", z), -ENOENT);
	file("/tmp/outer", "#!\n", 0755);
	WANT(run("/tmp/outer", z), -ENOEXEC);
	file("/tmp/outer", "neither\n", 0755);
	WANT(run("/tmp/outer", z), -ENOEXEC);
	file("/tmp/outer", "#!/in/self\n", 0644);
	WANT(run("/tmp/outer", z), -EACCES);
	WANT(run("/tmp", z), -EACCES);
	WANT(run("/tmp/none", z), -ENOENT);
	WANT(run("/tmp/outer/x", z), -ENOTDIR);
	/* Programs outside are still found, by their path there. */
	WANT(run(argv[0], plain), 20);
	/* By a descriptor, in a child that was forked. */
	fd = open("/in/self", O_RDONLY);
	if (!fork()) {
		fexecve(fd, plain, environ);
		_exit(7);
	}
	WANT(wait(&status) > 0, 1);
	WANT(WEXITSTATUS(status), 20);
	/* No descriptor is left over by failures or successes. */
	WANT(open("/in/self", O_RDONLY), fd + 1);
	return failures != 0;
}
