/* landlock(7): a process that confines its own use of files, as version 1 and 2 have it. */
#include "check.h"

#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define READ  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FIRST ((1ull << 13) - 1) /* all of version 1 */
#define REFER (1ull << 13)

static int ruleset(uint64_t handled)
{
	struct {
		uint64_t handled;
	} attr = { handled };

	return (int)syscall(SYS_landlock_create_ruleset, &attr, (long)sizeof attr, 0L);
}

static int allow_fd(int rules, uint64_t allowed, int parent)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = allowed, .parent_fd = parent };

	return (int)syscall(SYS_landlock_add_rule, (long)rules, (long)LANDLOCK_RULE_PATH_BENEATH, &attr, 0L);
}

static void allow(int rules, uint64_t allowed, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(allow_fd(rules, allowed, fd), 0);
	close(fd);
}

static int restrict_self(int rules)
{
	return (int)syscall(SYS_landlock_restrict_self, (long)rules, 0L);
}

static void confine(int rules)
{
	NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	NEED(restrict_self(rules) == 0);
	close(rules);
}

/* The errno of an open; 0 if it succeeds. */
static int opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void in_child(void (*check)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		check_failures = 0;
		check();
		_exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void check_errors(void)
{
	struct {
		uint64_t handled, more[4];
	} attr = { FIRST, { 0 } };
	int rules = ruleset(READ), file = open("a/file", O_RDONLY), ends[2];
	char c;

	NEED(rules >= 0 && file >= 0 && pipe(ends) == 0);
	CHECK_EQ(fcntl(rules, F_GETFD), FD_CLOEXEC);
	CHECK_ERRNO(syscall(SYS_landlock_create_ruleset, NULL, 0L, 0x40000000L), EINVAL);
	CHECK_ERRNO(syscall(SYS_landlock_create_ruleset, &attr, 8L, 1L), EINVAL);
	CHECK_ERRNO(syscall(SYS_landlock_create_ruleset, &attr, 7L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_landlock_create_ruleset, &attr, 5000L, 0L), E2BIG);
	CHECK_ERRNO(syscall(SYS_landlock_create_ruleset, NULL, 8L, 0L), EFAULT);
	CHECK_ERRNO(ruleset(0), ENOMSG);
	CHECK_ERRNO(ruleset(1ull << 60), EINVAL);
	CHECK_EQ(close((int)syscall(SYS_landlock_create_ruleset, &attr, (long)sizeof attr, 0L)), 0);
	attr.more[3] = 1;
	CHECK_ERRNO(syscall(SYS_landlock_create_ruleset, &attr, (long)sizeof attr, 0L), E2BIG);
	CHECK_ERRNO(allow_fd(rules, 0, file), ENOMSG);
	CHECK_ERRNO(allow_fd(rules, LANDLOCK_ACCESS_FS_EXECUTE, file), EINVAL);
	CHECK_ERRNO(allow_fd(rules, LANDLOCK_ACCESS_FS_READ_DIR, file), EINVAL);
	CHECK_ERRNO(allow_fd(rules, READ, 999), EBADF);
	CHECK_ERRNO(allow_fd(rules, READ, rules), EBADFD);
	CHECK_ERRNO(allow_fd(999, READ, file), EBADF);
	CHECK_ERRNO(allow_fd(file, READ, file), EBADFD);
	CHECK_ERRNO(syscall(SYS_landlock_add_rule, (long)rules, 77L, &attr, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_landlock_add_rule, (long)rules, 1L, &attr, 1L), EINVAL);
	CHECK_ERRNO(syscall(SYS_landlock_add_rule, (long)rules, 1L, NULL, 0L), EFAULT);
	CHECK_EQ(allow_fd(rules, LANDLOCK_ACCESS_FS_READ_FILE, file), 0);
	CHECK_ERRNO(read(rules, &c, 1), EINVAL);
	if (geteuid())
		CHECK_ERRNO(restrict_self(rules), EPERM);
	NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK_ERRNO(restrict_self(999), EBADF);
	CHECK_ERRNO(restrict_self(file), EBADFD);
	CHECK_ERRNO(syscall(SYS_landlock_restrict_self, (long)rules, 0x40000000L), EINVAL);
	for (int i = 0; i < 16; i++)
		CHECK_EQ(restrict_self(rules), 0);
	CHECK_ERRNO(restrict_self(rules), E2BIG);
}

/* Reading and writing, through links, `..` and descriptors. */
static void check_files(void)
{
	int rules = ruleset(READ | LANDLOCK_ACCESS_FS_WRITE_FILE), held = open("b", O_PATH | O_DIRECTORY);
	int before = open("b/file", O_RDWR), named = open("b/file", O_PATH);
	char name[32], c;
	struct stat st;

	allow(rules, READ | LANDLOCK_ACCESS_FS_WRITE_FILE, "a");
	allow(rules, LANDLOCK_ACCESS_FS_READ_FILE, "b/shown");
	allow(rules, READ, "/proc");
	confine(rules);
	CHECK_EQ(opens("a/file", O_RDWR), 0);
	CHECK_EQ(opens("a", O_RDONLY | O_DIRECTORY), 0);
	CHECK_EQ(opens("a/deep/er/file", O_RDWR), 0);
	CHECK_EQ(opens("a/new", O_WRONLY | O_CREAT), 0);
	CHECK_EQ(unlink("a/new"), 0);
	CHECK_EQ(opens("b/shown", O_RDONLY), 0);
	CHECK_EQ(opens("b/shown", O_RDWR), EACCES);
	CHECK_EQ(opens("b/file", O_RDONLY), EACCES);
	CHECK_EQ(opens("b/file", O_WRONLY), EACCES);
	CHECK_EQ(opens("b", O_RDONLY | O_DIRECTORY), EACCES);
	CHECK_EQ(opens(".", O_RDONLY | O_DIRECTORY), EACCES);
	CHECK_EQ(opens("/", O_RDONLY | O_DIRECTORY), EACCES);
	CHECK_EQ(opens("b/none", O_RDONLY), ENOENT);
	CHECK_EQ(opens("a/../b/file", O_RDONLY), EACCES);
	CHECK_EQ(opens("a/to_b", O_RDONLY), EACCES);
	CHECK_EQ(opens("b/to_a", O_RDWR), 0);
	CHECK_EQ(opens("b/to_a", O_RDWR | O_NOFOLLOW), ELOOP);
	CHECK_EQ(opens("b/new", O_WRONLY | O_CREAT), EACCES);
	CHECK_ERRNO(openat(held, "file", O_RDONLY), EACCES);
	CHECK_ERRNO(openat(held, "../b/file", O_RDONLY), EACCES);
	CHECK_EQ(close(openat(held, "../a/file", O_RDONLY)), 0);
	/* A look at names, and what was open before, is not restricted. */
	CHECK_EQ(stat("b/file", &st) | access("b/file", R_OK), 0);
	CHECK_EQ(opens("b/file", O_PATH), 0);
	CHECK_EQ(read(before, &c, 1), 1);
	CHECK_EQ(write(before, &c, 1), 1);
	CHECK_EQ(chdir("b") | chdir(".."), 0);
	snprintf(name, sizeof name, "/proc/self/fd/%d", named);
	CHECK_EQ(opens(name, O_RDONLY), EACCES);
	snprintf(name, sizeof name, "/proc/self/fd/%d", before);
	CHECK_EQ(opens(name, O_RDWR), EACCES);
	CHECK_EQ(opens("/proc/self/status", O_RDONLY), 0);
	CHECK_EQ(opens("/proc/self/comm", O_WRONLY), EACCES);
	CHECK_EQ(opens("/dev/null", O_RDONLY), EACCES);
}

/* Names that are made, moved and removed. */
static void check_names(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "b/socket" };
	int rules = ruleset(FIRST), fd = socket(AF_UNIX, SOCK_STREAM, 0);

	allow(rules, FIRST, "a");
	allow(rules, READ | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_WRITE_FILE, "b");
	confine(rules);
	CHECK_EQ(mkdir("a/d", 0700) | symlink("x", "a/l") | mknod("a/p", S_IFIFO | 0600, 0), 0);
	CHECK_EQ(rename("a/d", "a/e"), 0);
	CHECK_EQ(link("a/file", "a/second"), 0);
	CHECK_EQ(rmdir("a/e") | unlink("a/l") | unlink("a/p") | unlink("a/second"), 0);
	CHECK_ERRNO(mkdir("b/d", 0700), EACCES);
	CHECK_ERRNO(mkdir("b/file", 0700), EEXIST);
	CHECK_ERRNO(symlink("x", "b/l"), EACCES);
	CHECK_ERRNO(mknod("b/p", S_IFIFO | 0600, 0), EACCES);
	CHECK_ERRNO(unlink("b/file"), EACCES);
	CHECK_ERRNO(unlink("b/none"), ENOENT);
	CHECK_ERRNO(rmdir("b/dir"), EACCES);
	CHECK_ERRNO(rename("b/file", "b/other"), EACCES);
	CHECK_ERRNO(bind(fd, (struct sockaddr *)&address, sizeof address), EACCES);
	strcpy(address.sun_path, "a/socket");
	CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	CHECK_EQ(unlink("a/socket"), 0);
	CHECK_EQ(opens("b/made", O_WRONLY | O_CREAT | O_EXCL), 0);
	CHECK_EQ(opens("b/made", O_WRONLY | O_CREAT | O_EXCL), EEXIST);
	CHECK_EQ(link("b/file", "b/second"), 0);
	/* Without a rule about it no file gets another directory. */
	CHECK_ERRNO(rename("a/deep/er/file", "a/file2"), EXDEV);
	CHECK_ERRNO(link("a/file", "a/deep/second"), EXDEV);
	CHECK_ERRNO(link("a/file", "b/third"), EXDEV);
	CHECK_ERRNO(rename("a/file", "c"), EACCES);
	close(fd);
}

static void check_refer(void)
{
	int rules = ruleset(FIRST | REFER);

	allow(rules, FIRST | REFER, "a");
	allow(rules, READ | REFER | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE, "b");
	confine(rules);
	CHECK_EQ(rename("a/deep/er/file", "a/file2"), 0);
	CHECK_EQ(rename("a/file2", "a/deep/er/file"), 0);
	/* In `a` it could be written. */
	CHECK_ERRNO(rename("b/file", "a/taken"), EXDEV);
	CHECK_EQ(rename("a/file", "b/given"), 0);
	CHECK_ERRNO(rename("b/given", "a/file"), EXDEV);
}

/* A second ruleset can only take away; children are confined as well. */
static void check_layers(void)
{
	int first = ruleset(READ), second = ruleset(LANDLOCK_ACCESS_FS_READ_FILE), status;
	pid_t child;

	allow(first, READ, "a");
	allow(second, LANDLOCK_ACCESS_FS_READ_FILE, "a/deep");
	allow(second, LANDLOCK_ACCESS_FS_READ_FILE, "b");
	confine(first);
	CHECK_EQ(opens("a/file", O_RDONLY), 0);
	confine(second);
	CHECK_EQ(opens("a/file", O_RDONLY), EACCES);
	CHECK_EQ(opens("a/deep/er/file", O_RDONLY), 0);
	CHECK_EQ(opens("b/file", O_RDONLY), EACCES);
	CHECK_EQ(opens("a", O_RDONLY | O_DIRECTORY), 0);
	CHECK_EQ(opens("b/file", O_WRONLY), 0);
	if (!(child = fork())) {
		CHECK_EQ(opens("a/file", O_RDONLY), EACCES);
		CHECK_EQ(opens("a/deep/er/file", O_RDONLY), 0);
		_exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* Programs are executed only where a rule says so. */
static void check_programs(void)
{
	int rules = ruleset(LANDLOCK_ACCESS_FS_EXECUTE);
	char *const argv[] = { "script", NULL };

	allow(rules, LANDLOCK_ACCESS_FS_EXECUTE, "a");
	confine(rules);
	CHECK_ERRNO(execv("b/script", argv), EACCES);
	/* There it may be run, but not its interpreter. */
	CHECK_ERRNO(execv("a/script", argv), EACCES);
	CHECK_EQ(opens("b/script", O_RDONLY), 0);
}

/* A name that becomes a link to what may not be read, or the other way round. */
static void check_swaps(void)
{
	int rules = ruleset(LANDLOCK_ACCESS_FS_READ_FILE), status, stop[2];
	pid_t child;
	char c;

	NEED(pipe(stop) == 0);
	if (!(child = fork())) {
		fcntl(stop[0], F_SETFL, O_NONBLOCK);
		for (int i = 0; i < 1000000 && read(stop[0], &c, 1) < 0; i++)
			renameat2(AT_FDCWD, "a/one", AT_FDCWD, "a/two", RENAME_EXCHANGE);
		_exit(0);
	}
	allow(rules, LANDLOCK_ACCESS_FS_READ_FILE, "a");
	confine(rules);
	for (int i = 0; i < 300; i++) {
		int fd = open("a/one", O_RDONLY);

		CHECK(fd < 0 || (read(fd, &c, 1) == 1 && c == 'a'));
		CHECK(fd >= 0 || errno == EACCES);
		close(fd);
	}
	CHECK_EQ(write(stop[1], "x", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
}

static void script(const char *name)
{
	int fd = check_file(name, "#!/bin/sh\n");

	NEED(fchmod(fd, 0755) == 0 && close(fd) == 0);
}

static void make(void)
{
	NEED(mkdir("a", 0755) == 0 && mkdir("a/deep", 0755) == 0 && mkdir("a/deep/er", 0755) == 0);
	NEED(mkdir("b", 0755) == 0 && mkdir("b/dir", 0755) == 0);
	close(check_file("a/file", "a"));
	close(check_file("a/one", "a"));
	close(check_file("a/deep/er/file", "a"));
	close(check_file("b/file", "bb"));
	close(check_file("b/shown", "b"));
	script("a/script");
	script("b/script");
	NEED(symlink("../b/file", "a/to_b") == 0 && symlink("../a/file", "b/to_a") == 0);
	NEED(symlink("../b/file", "a/two") == 0);
}

static void clear(void)
{
	const char *const files[] = { "a/one", "a/two", "a/deep/er/file", "a/script", "a/to_b", "b/file", "b/shown",
		"b/script", "b/to_a", "b/made", "b/second", "b/given" };

	/* The name of a file that may be made and not opened is made, or it is not. */
	unlink("b/new");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		CHECK_EQ(unlink(files[i]), 0);
	CHECK_EQ(rmdir("a/deep/er") | rmdir("a/deep") | rmdir("a") | rmdir("b/dir") | rmdir("b"), 0);
}

int main(void)
{
	void (*const checks[])(
	    void) = { check_errors, check_files, check_layers, check_programs, check_swaps, check_names, check_refer };
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0L, (long)LANDLOCK_CREATE_RULESET_VERSION);

	if (version < 2) {
		CHECK(version == 1 || errno == ENOSYS || errno == EOPNOTSUPP);
		check_skip("no landlock here, or one without LANDLOCK_ACCESS_FS_REFER");
	}
	make();
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		in_child(checks[i]);
	clear();
	return check_done();
}
