/* Programs whose files have the set-user-ID or set-group-ID bit. */
#include "check.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER 1000

extern char **environ;

static void copy_of(const char *name, int program)
{
	struct stat stat;
	off_t at = 0;
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);

	NEED(fd >= 0 && fstat(program, &stat) == 0);
	while (at < stat.st_size)
		NEED(sendfile(fd, program, &at, (size_t)(stat.st_size - at)) > 0);
	NEED(close(fd) == 0);
}

/* The sum of the rights that a program finds: 1 root to files, 2 root effectively, 4 told to be
 * careful, 8 the group, 16 still the user. */
static int found(void)
{
	int fd = open("secret", O_RDONLY);

	return (fd >= 0) | (geteuid() == 0) << 1 | (getauxval(AT_SECURE) != 0) << 2 | (getegid() == 5) << 3 |
	    (getuid() == USER) << 4;
}

static int runs(mode_t mode, uid_t uid, gid_t gid, int no_more)
{
	char *args[] = { "copy", "found", NULL };
	int status = -1;
	pid_t pid;

	NEED(chown("copy", uid, gid) == 0 && chmod("copy", mode) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		if (setgid(USER) || setuid(USER) || (no_more && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L)))
			_exit(99);
		execve("./copy", args, environ);
		_exit(98);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

int main(int argc, char **argv)
{
	struct statvfs fs;
	int program, fd;

	if (argc > 1)
		return found();
	program = open(argv[0], O_RDONLY | O_CLOEXEC);
	if (program < 0 || geteuid() || setgroups(0, NULL) || statvfs(".", &fs) || (fs.f_flag & ST_NOSUID)) {
		puts("takes root, the program's own file, and a file system that is not nosuid");
		return 77;
	}
	NEED(chmod(".", 0755) == 0 && (fd = open("secret", O_CREAT | O_EXCL | O_WRONLY, 0600)) >= 0);
	close(fd);
	copy_of("copy", program);
	CHECK_EQ(runs(0755, 0, 5, 0), 16);
	CHECK_EQ(runs(04755, 0, 5, 0), 1 | 2 | 4 | 16);
	CHECK_EQ(runs(02755, 0, 5, 0), 4 | 8 | 16);
	/* Without execution for the group it means something else. */
	CHECK_EQ(runs(02745, 0, 5, 0), 16);
	CHECK_EQ(runs(06755, 0, 5, 0), 1 | 2 | 4 | 8 | 16);
	CHECK_EQ(runs(06755, 0, 5, 1), 16);
	CHECK_EQ(runs(0700, 0, 5, 0), 98);
	CHECK_EQ(unlink("copy") | unlink("secret"), 0);
	return check_done();
}
