/* chroot(2): paths, links and `..` below a root of one's own, what leads out of it, and who may. */
#include "check.h"

#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SWAPS 300

/* Runs `check` in a child, and notes whether it failed. */
static void in_child(void (*check)(int), int argument)
{
	pid_t child = fork();
	int status;

	if (!child) {
		check_failures = 0;
		check(argument);
		_exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void check_text(int dir, const char *path, const char *want)
{
	char text[16] = "";
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	if (CHECK(fd >= 0) && CHECK(read(fd, text, sizeof text - 1) >= 0) && CHECK_STR(text, want)) {
		close(fd);
		return;
	}
	printf("%s\n", path);
	fflush(stdout);
	close(fd);
}

/* The answer of getcwd(2) itself, of which a C library may make an error. */
static const char *cwd(void)
{
	static char path[4096];

	return syscall(SYS_getcwd, path, sizeof path) > 0 ? path : strerror(errno);
}

static void check_paths(int outside)
{
	struct stat st, root;
	char text[64];

	CHECK_EQ(chroot("a"), 0);
	CHECK_EQ(strncmp(cwd(), "(unreachable)/", 14), 0);
	check_text(AT_FDCWD, "/file", "in");
	check_text(AT_FDCWD, "/../../file", "in");
	check_text(AT_FDCWD, "/b/../../../file", "in");
	check_text(AT_FDCWD, "/link", "in");
	check_text(AT_FDCWD, "/b/up", "in");
	check_text(AT_FDCWD, "//b//.//../link", "in");
	/* The working directory stays where it was. */
	check_text(AT_FDCWD, "file", "out");
	check_text(AT_FDCWD, "a/link", "in");
	check_text(AT_FDCWD, "to_file", "in");
	check_text(outside, "file", "out");
	CHECK_ERRNO(open("/out", O_RDONLY), ENOENT);
	CHECK_ERRNO(access("/proc/self", F_OK), ENOENT);
	CHECK_EQ(chdir("/b"), 0);
	CHECK_STR(cwd(), "/b");
	check_text(AT_FDCWD, "../file", "in");
	check_text(AT_FDCWD, "../../../file", "in");
	CHECK_EQ(chdir("../.."), 0);
	CHECK_STR(cwd(), "/");
	CHECK_EQ(stat("/", &root) | stat("/..", &st), 0);
	CHECK_EQ(st.st_ino, root.st_ino);
	CHECK_EQ(readlink("/link", text, sizeof text), 5);
	CHECK_EQ(lstat("/link", &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(stat("/link", &st), 0);
	CHECK(S_ISREG(st.st_mode));
	CHECK_ERRNO(open("/link", O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK_ERRNO(stat("/circle", &st), ELOOP);
	CHECK_ERRNO(stat("/file/", &st), ENOTDIR);
	CHECK_ERRNO(stat("/file/x", &st), ENOTDIR);
	CHECK_ERRNO(stat("/none/x", &st), ENOENT);
	CHECK_EQ(stat("/blink/", &st), 0);
	CHECK_ERRNO(rmdir("/blink/"), ENOTDIR);
	CHECK_EQ(rmdir("/"), -1);
	CHECK_ERRNO(rmdir("/b/."), EINVAL);
	CHECK_ERRNO(rmdir("/b/.."), ENOTEMPTY);
	CHECK_ERRNO(mkdir("/", 0700), EEXIST);
	CHECK_ERRNO(mkdir("/b/..", 0700), EEXIST);
}

static void check_names(int outside)
{
	struct stat st;
	struct statfs fs;
	struct timespec times[2] = { { 7, 0 }, { 9, 0 } };
	int fd;

	CHECK_EQ(chroot("a") | chdir("/"), 0);
	CHECK_EQ(mkdir("/new", 0755), 0);
	CHECK_EQ(fstatat(outside, "a/new", &st, 0), 0);
	CHECK_EQ(rename("/new", "/b/../other"), 0);
	CHECK_EQ(rmdir("/other"), 0);
	CHECK_EQ(symlink("/file", "/second"), 0);
	check_text(AT_FDCWD, "/second", "in");
	CHECK_EQ(unlink("/second"), 0);
	/* The file of a link that leads nowhere is made where the link leads from this root. */
	CHECK_EQ(symlink("/made", "/third"), 0);
	fd = open("/third", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(fstatat(outside, "a/made", &st, 0), 0);
	CHECK_EQ(unlink("/third") | unlink("/made"), 0);
	CHECK_EQ(link("/file", "/hard"), 0);
	CHECK_EQ(linkat(AT_FDCWD, "/link", AT_FDCWD, "/soft", AT_SYMLINK_FOLLOW), 0);
	CHECK_EQ(lstat("/soft", &st), 0);
	CHECK(S_ISREG(st.st_mode) && st.st_nlink == 3);
	CHECK_EQ(linkat(AT_FDCWD, "/link", AT_FDCWD, "/link2", 0), 0);
	CHECK_EQ(lstat("/link2", &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(unlink("/hard") | unlink("/soft") | unlink("/link2"), 0);
	CHECK_EQ(chmod("/link", 0640), 0);
	CHECK_EQ(fstatat(outside, "a/file", &st, 0), 0);
	CHECK_EQ(st.st_mode & 07777, 0640);
	CHECK_EQ(utimensat(AT_FDCWD, "/link", times, 0), 0);
	CHECK_EQ(fstatat(outside, "a/file", &st, 0), 0);
	CHECK_EQ(st.st_mtim.tv_sec, 9);
	CHECK_EQ(chown("/link", 3, 4), 0);
	CHECK_EQ(fstatat(outside, "a/file", &st, 0), 0);
	CHECK_EQ(st.st_uid, 3);
	CHECK_EQ(truncate("/link", 2), 0);
	CHECK_EQ(statfs("/", &fs), 0);
	CHECK_EQ(access("/link", R_OK), 0);
	CHECK_EQ(faccessat(outside, "file", F_OK, 0), 0);
	fd = open("/b", O_TMPFILE | O_RDWR, 0600);
	CHECK(fd >= 0 || errno == EOPNOTSUPP);
	close(fd);
	fd = inotify_init1(IN_CLOEXEC);
	CHECK(inotify_add_watch(fd, "/b", IN_CREATE) >= 0);
	close(fd);
}

/* A directory that was open before leads out, as on any Linux; and the way back is chroot(2). */
static void check_open(int outside)
{
	struct open_how how = { .flags = O_RDONLY, .resolve = RESOLVE_IN_ROOT };
	struct stat st;

	CHECK_EQ(chroot("a/b") | chdir("/"), 0);
	CHECK_ERRNO(open("/file", O_RDONLY), ENOENT);
	check_text(outside, "file", "out");
	/* On the way through the root, `..` stays there. */
	check_text(outside, "a/b/../own", "b");
	CHECK_ERRNO(openat(outside, "a/b/../../file", O_RDONLY), ENOENT);
	check_text(outside, "a/file", "in");
	CHECK_ERRNO(openat(outside, "a/link", O_RDONLY), ENOENT);
	/* Grates that walk paths have no openat2(2). */
	if (syscall(SYS_openat2, outside, "none", &how, sizeof how) != -1 || errno != ENOSYS) {
		CHECK(close((int)syscall(SYS_openat2, outside, "/file", &how, sizeof how)) == 0);
		CHECK(close((int)syscall(SYS_openat2, outside, "/a/link", &how, sizeof how)) == 0);
	}
	CHECK_EQ(fchdir(outside), 0);
	CHECK_EQ(strncmp(cwd(), "(unreachable)/", 14), 0);
	check_text(AT_FDCWD, "file", "out");
	CHECK_EQ(stat("../.", &st), 0);
	CHECK_EQ(chroot("."), 0);
	CHECK_STR(cwd(), "/");
	check_text(AT_FDCWD, "/file", "out");
	check_text(AT_FDCWD, "/to_file", "out");
	check_text(AT_FDCWD, "/a/b/../../../file", "out");
}

/* To the top, by a directory that is held: that is the root that the process began with. */
static void check_way_back(int outside)
{
	struct stat st, was, is;

	CHECK_EQ(stat("/", &was), 0);
	CHECK_EQ(chroot("a"), 0);
	CHECK_EQ(fchdir(outside), 0);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(chdir(".."), 0);
	CHECK_EQ(chroot("."), 0);
	CHECK_EQ(stat("/", &is), 0);
	CHECK_EQ(is.st_ino, was.st_ino);
	CHECK_EQ(is.st_dev, was.st_dev);
	CHECK_EQ(fstat(outside, &st), 0);
	CHECK_EQ(access("/proc/self/fd", F_OK), 0);
}

static void check_proc(int outside)
{
	char name[64], text[4096], here[4096];
	int proc = open("/proc", O_RDONLY | O_DIRECTORY), ends[2], status;
	pid_t child;
	ssize_t n;

	(void)outside;
	NEED(pipe(ends) == 0 && getcwd(here, sizeof here));
	if (!(child = fork())) {
		CHECK_EQ(chroot("a") | chdir("/b"), 0);
		n = readlinkat(proc, "self/root", text, sizeof text);
		CHECK_EQ(n, 1);
		n = readlinkat(proc, "self/cwd", text, sizeof text);
		CHECK(n == 2 && !memcmp(text, "/b", 2));
		check_text(proc, "self/root/file", "in");
		check_text(proc, "self/cwd/up", "in");
		close(ends[1]);
		read(ends[0], text, 1);
		_exit(check_done());
	}
	close(ends[0]);
	/* Its root and working directory are named from the root of the one that asks. */
	snprintf(name, sizeof name, "/proc/%d/root", (int)child);
	strcat(here, "/a");
	for (int i = 0; i < 500; i++) {
		n = readlink(name, text, sizeof text - 1);
		text[n > 0 ? n : 0] = 0;
		if (strcmp(text, "/"))
			break;
		usleep(10000);
	}
	CHECK_STR(text, here);
	strcat(name, "/file");
	check_text(AT_FDCWD, name, "in");
	snprintf(name, sizeof name, "/proc/%d/root", (int)child);
	strcat(name, "/../file");
	check_text(AT_FDCWD, name, "out");
	close(ends[1]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void check_children(int outside)
{
	int status;
	pid_t child;

	(void)outside;
	CHECK_EQ(chroot("a"), 0);
	if (!(child = fork())) {
		check_text(AT_FDCWD, "/link", "in");
		CHECK_EQ(chroot("/b") | chdir("/"), 0);
		CHECK_STR(cwd(), "/");
		check_text(AT_FDCWD, "/own", "b");
		_exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	/* Its root was its own. */
	check_text(AT_FDCWD, "/link", "in");
}

/* Names and directories that change places with links while they are looked up. */
static void check_swaps(int outside)
{
	volatile int *over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int status;
	char text[8];

	NEED(over != MAP_FAILED);
	if (!(child = fork())) {
		for (int i = 0; !*over && i < 1000000; i++) {
			renameat2(outside, "a/one", outside, "a/two", RENAME_EXCHANGE);
			renameat2(outside, "a/three", outside, "a/four", RENAME_EXCHANGE);
		}
		_exit(0);
	}
	CHECK_EQ(chroot("a") | chdir("/"), 0);
	for (int i = 0; i < SWAPS; i++) {
		int fd = open(i % 2 ? "/one" : "/three/../three/file", O_RDONLY);
		ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;

		/* The links lead to names that only the outer root has. */
		CHECK(fd < 0 || (n > 0 && text[0] == 'i'));
		CHECK(fd >= 0 || errno == ENOENT);
		close(fd);
	}
	*over = 1;
	CHECK_EQ(waitpid(child, &status, 0), child);
}

static void check_rights(int outside)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	(void)outside;
	CHECK_EQ(syscall(SYS_capget, &header, data), 0);
	CHECK(data[0].effective & 1u << CAP_SYS_CHROOT);
	data[0].effective &= ~(1u << CAP_SYS_CHROOT);
	CHECK_EQ(syscall(SYS_capset, &header, data), 0);
	CHECK_ERRNO(chroot("a"), EPERM);
	CHECK_ERRNO(chroot("none"), ENOENT);
	data[0].effective |= 1u << CAP_SYS_CHROOT;
	CHECK_EQ(syscall(SYS_capset, &header, data), 0);
	CHECK_EQ(chroot("a"), 0);
	CHECK_EQ(setgid(65534) | setuid(65534), 0);
	CHECK_ERRNO(chroot("/"), EPERM);
	check_text(AT_FDCWD, "/own", "all");
}

static void check_errors(int outside)
{
	char longer[5000];

	(void)outside;
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = 0;
	CHECK_ERRNO(chroot("none"), ENOENT);
	CHECK_ERRNO(chroot(""), ENOENT);
	CHECK_ERRNO(chroot("file"), ENOTDIR);
	CHECK_ERRNO(chroot("a/circle"), ELOOP);
	CHECK_ERRNO(chroot(longer), ENAMETOOLONG);
	CHECK_ERRNO(syscall(SYS_chroot, 8L), EFAULT);
}

/* Whether root may change its root; a grate that follows paths in its own way may refuse it. */
static bool permitted(void)
{
	pid_t child = fork();
	int status = 0;

	if (!child)
		_exit(chroot(".") && errno == EPERM);
	NEED(waitpid(child, &status, 0) == child);
	return !status;
}

static void make(void)
{
	NEED(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && mkdir("a/three", 0755) == 0);
	close(check_file("file", "out"));
	close(check_file("out", "out"));
	close(check_file("a/file", "in"));
	close(check_file("a/one", "in"));
	close(check_file("a/three/file", "in"));
	close(check_file("a/b/own", "b"));
	close(check_file("a/own", "all"));
	NEED(chmod("a/own", 0644) == 0 && chmod("a", 0755) == 0);
	NEED(symlink("/file", "a/link") == 0 && symlink("../../file", "a/b/up") == 0);
	NEED(symlink("/b", "a/blink") == 0 && symlink("circle", "a/circle") == 0 && symlink("/file", "to_file") == 0);
	/* In the outer root these lead to files: the working directory is a name there. */
	NEED(symlink("/proc/self/status", "a/two") == 0 && symlink("/proc/self", "a/four") == 0);
}

static void clear(void)
{
	const char *const files[] = { "file", "out", "to_file", "a/file", "a/one", "a/two", "a/b/own", "a/own",
		"a/link", "a/b/up", "a/blink", "a/circle" };

	/* They may have changed places. */
	unlink("a/three/file");
	unlink("a/four/file");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		CHECK_EQ(unlink(files[i]), 0);
	if (rmdir("a/three"))
		CHECK_EQ(unlink("a/three") | rmdir("a/four"), 0);
	else
		CHECK_EQ(unlink("a/four"), 0);
	CHECK_EQ(rmdir("a/b") | rmdir("a"), 0);
}

int main(void)
{
	void (*const checks[])(int) = { check_errors, check_paths, check_names, check_open, check_way_back, check_proc,
		check_children, check_swaps, check_rights };
	int outside;

	if (geteuid()) {
		CHECK_ERRNO(chroot("."), EPERM);
		return check_done();
	}
	if (!permitted())
		check_skip("nobody may change the root here");
	make();
	NEED((outside = open(".", O_RDONLY | O_DIRECTORY)) >= 0);
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		in_child(checks[i], outside);
	clear();
	return check_done();
}
