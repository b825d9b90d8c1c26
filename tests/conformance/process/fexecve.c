/* Tests fexecve and execveat by descriptor: one open for reading, one by O_PATH, one that closes on
 * exec, one that is not a program. */
#include "../check.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(int fd, int flags)
{
	char *argv[] = { "fexecve", "42", 0 }, *envp[] = { 0 };
	int status = -1;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		syscall(SYS_execveat, (long)fd, "", argv, envp, (long)flags);
		_exit(errno == EACCES ? 1 : errno == ENOENT ? 2 : errno == EBADF ? 3 : errno == EINVAL ? 4 : 5);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	char *args[] = { "fexecve", "43", 0 }, *envp[] = { 0 };
	int fd, status = -1;
	pid_t pid;

	if (argc > 1)
		return atoi(argv[1]);
	fd = open("/proc/self/exe", O_RDONLY);
	NEED(fd >= 0);
	CHECK_EQ(run(fd, AT_EMPTY_PATH), 42);
	CHECK_EQ(run(fd, 0), 2);
	/* The position is the descriptor's own affair. */
	CHECK_EQ(lseek(fd, 5, SEEK_SET), 5);
	CHECK_EQ(run(fd, AT_EMPTY_PATH), 42);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
	close(fd);
	fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	NEED(fd >= 0);
	CHECK_EQ(run(fd, AT_EMPTY_PATH), 42);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		fexecve(fd, args, envp);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 43);
	close(fd);
	CHECK_EQ(run(fd, AT_EMPTY_PATH), 3);
	close(check_file("file", "#!/nowhere\n"));
	fd = open("file", O_PATH);
	CHECK_EQ(run(fd, AT_EMPTY_PATH), 1);
	close(fd);
	fd = open(".", O_PATH | O_DIRECTORY);
	CHECK_EQ(run(fd, AT_EMPTY_PATH), 1);
	close(fd);
	unlink("file");
	return check_done();
}
