/* execveat: what it says of descriptors, paths, flags and files that cannot be run. */
#include "check.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RAN 0

/* The errno, or RAN. */
static int attempt(int directory, const char *path, int flags)
{
	char *arguments[] = { "execveat", "ran", NULL }, *environment[] = { NULL };
	int status = -1;
	pid_t child = fork();

	NEED(child >= 0);
	if (!child) {
		syscall(SYS_execveat, (long)directory, path, arguments, environment, (long)flags);
		_exit(errno);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_descriptors(int file, int directory)
{
	CHECK_EQ(attempt(999, "x", 0), EBADF);
	CHECK_EQ(attempt(-1, "", AT_EMPTY_PATH), EBADF);
	CHECK_EQ(attempt(file, "x", 0), ENOTDIR);
	CHECK_EQ(attempt(file, "", AT_EMPTY_PATH), EACCES);
	CHECK_EQ(attempt(directory, "", AT_EMPTY_PATH), EACCES);
	CHECK_EQ(attempt(AT_FDCWD, "", AT_EMPTY_PATH), EACCES);
	CHECK_EQ(attempt(AT_FDCWD, "", 0), ENOENT);
	CHECK_EQ(attempt(directory, "x", 0), ENOENT);
	CHECK_EQ(attempt(directory, "..", 0), EACCES);
	/* Of a path that begins at the root the descriptor is not looked at. */
	CHECK_EQ(attempt(999, "/proc/self/exe", 0), RAN);
}

static void check_paths(void)
{
	static char longest[PATH_MAX + 2];

	CHECK_EQ(attempt(AT_FDCWD, NULL, 0), EFAULT);
	CHECK_EQ(attempt(AT_FDCWD, (char *)8, 0), EFAULT);
	memset(longest, 'a', PATH_MAX + 1);
	CHECK_EQ(attempt(AT_FDCWD, longest, 0), ENAMETOOLONG);
	longest[NAME_MAX + 1] = 0;
	CHECK_EQ(attempt(AT_FDCWD, longest, 0), ENAMETOOLONG);
	CHECK_EQ(attempt(AT_FDCWD, "file/x", 0), ENOTDIR);
	CHECK_EQ(attempt(AT_FDCWD, "dangles", 0), ENOENT);
	CHECK_EQ(attempt(AT_FDCWD, "loop", 0), ELOOP);
	CHECK_EQ(attempt(AT_FDCWD, "link", 0), RAN);
	CHECK_EQ(attempt(AT_FDCWD, "link", AT_SYMLINK_NOFOLLOW), ELOOP);
}

static void check_flags(void)
{
	int program = open("/proc/self/exe", O_RDONLY);

	NEED(program >= 0);
	CHECK_EQ(attempt(program, "", AT_EMPTY_PATH), RAN);
	CHECK_EQ(attempt(program, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW), RAN);
	CHECK_EQ(attempt(program, "", AT_EMPTY_PATH | 1), EINVAL);
	CHECK_EQ(attempt(program, "", AT_EMPTY_PATH | AT_REMOVEDIR), EINVAL);
	close(program);
}

static void check_files(int file)
{
	int script;

	CHECK_EQ(attempt(AT_FDCWD, "file", 0), EACCES);
	CHECK_EQ(fchmod(file, 0700), 0);
	CHECK_EQ(attempt(AT_FDCWD, "file", 0), ETXTBSY);
	close(file);
	CHECK_EQ(attempt(AT_FDCWD, "file", 0), ENOEXEC);
	close(check_file("script", "#!/nothing\n"));
	CHECK_EQ(chmod("script", 0700), 0);
	CHECK_EQ(attempt(AT_FDCWD, "script", 0), ENOENT);
	NEED((script = open("script", O_RDONLY)) >= 0);
	CHECK_EQ(attempt(script, "", AT_EMPTY_PATH), ENOENT);
	close(script);
	/* The interpreter is handed a name that leads to the descriptor, which is gone when it looks. */
	close(check_file("script", "#!/proc/self/exe\n"));
	NEED((script = open("script", O_RDONLY | O_CLOEXEC)) >= 0);
	CHECK_EQ(attempt(script, "", AT_EMPTY_PATH), ENOENT);
	close(script);
	NEED((script = open("script", O_RDONLY)) >= 0);
	CHECK_EQ(attempt(script, "", AT_EMPTY_PATH), RAN);
	close(script);
	CHECK_EQ(unlink("script"), 0);
}

int main(int argc, char **argv)
{
	int file, directory;

	/* As a script's interpreter too. */
	if (argc > 1)
		return strcmp(argv[argc - 1], "ran") ? 99 : RAN;
	file = check_file("file", "");
	NEED(mkdir("directory", 0700) == 0 && (directory = open("directory", O_RDONLY | O_DIRECTORY)) >= 0);
	NEED(symlink("/proc/self/exe", "link") == 0 && symlink("nothing", "dangles") == 0 &&
	    symlink("loop", "loop") == 0);
	check_descriptors(file, directory);
	check_paths();
	check_flags();
	check_files(file);
	close(directory);
	CHECK_EQ(unlink("file") | unlink("link") | unlink("dangles") | unlink("loop") | rmdir("directory"), 0);
	return check_done();
}
