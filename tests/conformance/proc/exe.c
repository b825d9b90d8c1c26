/* /proc/self/exe is the file that runs, whatever it was called: by a relative name, through a
 * symbolic link, by a descriptor. */
#include "check.h"
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static char want[5000];

static int run(const char *path, int fd)
{
	char *args[] = { "name", want, NULL };
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		if (path)
			execve(path, args, environ);
		else
			syscall(SYS_execveat, (long)fd, (long)"", (long)args, (long)environ, (long)AT_EMPTY_PATH);
		_exit(99);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static int told(const char *exe)
{
	char link[5000];
	struct stat a, b;
	ssize_t length = readlink("/proc/self/exe", link, sizeof link - 1);

	if (length <= 0)
		return 1;
	link[length] = 0;
	if (strcmp(link, exe)) {
		printf("/proc/self/exe is %s, not %s\n", link, exe);
		return 2;
	}
	return stat("/proc/self/exe", &a) || stat(exe, &b) || a.st_ino != b.st_ino ? 3 : 0;
}

static void copy(const char *from, const char *to)
{
	static char part[65536];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
	ssize_t got;

	NEED(in >= 0 && out >= 0);
	while ((got = read(in, part, sizeof part)) > 0)
		NEED(write(out, part, (size_t)got) == got);
	close(in);
	close(out);
}

int main(int argc, char **argv)
{
	struct stat st;
	int fd;

	if (argc > 1)
		return told(argv[1]);
	if (stat("/proc/self/exe", &st))
		check_skip("the program's own file cannot be found here");
	copy("/proc/self/exe", "program");
	NEED(getcwd(want, sizeof want - 20));
	strcat(want, "/program");
	CHECK_EQ(symlink("program", "link"), 0);
	CHECK_EQ(mkdir("below", 0755), 0);
	CHECK_EQ(run("./program", -1), 0);
	CHECK_EQ(run("program", -1), 0);
	CHECK_EQ(run("./link", -1), 0);
	CHECK_EQ(run("below/../program", -1), 0);
	fd = open("program", O_RDONLY | O_CLOEXEC);
	NEED(fd >= 0);
	CHECK_EQ(run(NULL, fd), 0);
	close(fd);
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(rmdir("below"), 0);
	CHECK_EQ(unlink("program"), 0);
	return check_done();
}
