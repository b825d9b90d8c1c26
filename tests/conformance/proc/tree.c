/* /proc and /dev as directories: listing, walking in and out, by links, from inside, and what
 * cannot be changed there. */
#include "check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static int listed(const char *path, const char *name)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int found = 0;

	NEED(dir != NULL);
	while ((entry = readdir(dir)))
		found += !strcmp(entry->d_name, name);
	rewinddir(dir);
	while ((entry = readdir(dir)))
		found -= !strcmp(entry->d_name, name);
	CHECK_EQ(found, 0);
	rewinddir(dir);
	while ((entry = readdir(dir)))
		found += !strcmp(entry->d_name, name);
	closedir(dir);
	return found;
}

static void check_lists(void)
{
	char pid[32];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	CHECK_EQ(listed("/proc", pid), 1);
	CHECK_EQ(listed("/proc", "self"), 1);
	CHECK_EQ(listed("/proc", "."), 1);
	CHECK_EQ(listed("/proc", "meminfo"), 1);
	CHECK_EQ(listed("/proc/self", "status"), 1);
	CHECK_EQ(listed("/proc/self/task", pid), 1);
	CHECK_EQ(listed("/dev", "null"), 1);
	CHECK_EQ(listed("/dev", "shm"), 1);
	CHECK_EQ(listed("/proc/sys/kernel", "osrelease"), 1);
}

static void check_walks(void)
{
	struct stat a, b;
	char cwd[256];
	int fd, sub, here = open(".", O_RDONLY | O_DIRECTORY);

	NEED(here >= 0);
	NEED(symlink("/proc/self", "l") == 0);
	CHECK_EQ(access("l/status", R_OK), 0);
	NEED(stat("l", &a) == 0 && stat("/proc/self", &b) == 0);
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(a.st_dev, b.st_dev);
	NEED(lstat("l", &a) == 0);
	CHECK(S_ISLNK(a.st_mode));
	CHECK_EQ(access("l/cwd/l/cwd/l/status", R_OK), 0);
	CHECK_EQ(unlink("l"), 0);
	NEED(symlink("/dev/null", "n") == 0);
	NEED((fd = open("n", O_WRONLY | O_CREAT, 0600)) >= 0);
	NEED(fstat(fd, &a) == 0);
	CHECK(S_ISCHR(a.st_mode));
	close(fd);
	CHECK_EQ(unlink("n"), 0);

	NEED(chdir("/proc/self") == 0);
	CHECK_EQ(access("status", R_OK), 0);
	CHECK_EQ(access("../meminfo", R_OK), 0);
	CHECK_EQ(access("../../dev/null", W_OK), 0);
	CHECK_EQ(access("./task/../stat", R_OK), 0);
	snprintf(cwd, sizeof cwd, "/proc/%d", (int)getpid());
	CHECK_STR(getcwd((char[256]){ 0 }, 256), cwd);
	CHECK_EQ(chdir("../.."), 0);
	CHECK_STR(getcwd(cwd, sizeof cwd), "/");
	CHECK_EQ(access("proc/self/../self/status", R_OK), 0);
	CHECK_EQ(access("proc/../dev/null", W_OK), 0);

	NEED((fd = open("/proc", O_RDONLY | O_DIRECTORY)) >= 0);
	CHECK_EQ(faccessat(fd, "self/status", R_OK, 0), 0);
	NEED((sub = openat(fd, "self", O_RDONLY)) >= 0);
	NEED(fstat(sub, &a) == 0);
	CHECK(S_ISDIR(a.st_mode));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_ERRNO(read(sub, cwd, sizeof cwd), EISDIR);
	CHECK_ERRNO(pread(fd, cwd, sizeof cwd, 0), EISDIR);
	CHECK_ERRNO(write(sub, cwd, 1), EBADF);
	CHECK_ERRNO(ftruncate(sub, 0), EINVAL);
	CHECK_EQ(fcntl(sub, F_GETFL) & O_ACCMODE, O_RDONLY);
	CHECK_ERRNO(openat(sub, "..", O_RDWR), EISDIR);
	CHECK_EQ(fchdir(sub), 0);
	CHECK_EQ(access("maps", R_OK), 0);
	CHECK_EQ(fchdir(here), 0);
	CHECK_ERRNO(read(open("/proc/self/status", O_RDONLY | O_PATH), cwd, 1), EBADF);
	close(sub);
	close(fd);
	close(here);
}

static void check_unchangeable(void)
{
	struct statfs fs;
	struct stat st;

	CHECK_ERRNO(mkdir("/proc/self", 0700), EEXIST);
	CHECK(mkdir("/proc/new", 0700) == -1);
	CHECK(unlink("/proc/version") == -1);
	CHECK(rename("/proc/version", "v") == -1);
	CHECK_ERRNO(link("/proc/version", "v"), EXDEV);
	CHECK_ERRNO(open("/proc/nothing", O_RDONLY), ENOENT);
	CHECK_ERRNO(open("/proc/self/nothing/x", O_RDONLY), ENOENT);
	CHECK_ERRNO(open("/proc/self/status/x", O_RDONLY), ENOTDIR);
	CHECK_ERRNO(open("/proc/self/status/", O_RDONLY), ENOTDIR);
	CHECK_ERRNO(open("/proc/self", O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK_ERRNO(open("/proc/self/", O_WRONLY), EISDIR);
	CHECK_ERRNO(open("/proc/4294967297", O_RDONLY), ENOENT);
	CHECK_ERRNO(open("/proc/+1", O_RDONLY), ENOENT);
	CHECK_ERRNO(open("/proc/self/status", O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHECK_ERRNO(open("/proc/self/status", O_RDONLY | O_CREAT | O_EXCL, 0600), EEXIST);
	NEED(statfs("/proc", &fs) == 0);
	CHECK_EQ(fs.f_type, 0x9fa0);
	NEED(statfs("/proc/self/status", &fs) == 0);
	CHECK_EQ(fs.f_type, 0x9fa0);
	NEED(stat("/proc/self/status", &st) == 0);
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(st.st_mode, S_IFREG | 0444);
}

int main(void)
{
	if (access("/proc/self/stat", R_OK) || access("/dev/shm", F_OK))
		check_skip("no /proc or /dev here");
	check_lists();
	check_walks();
	check_unchangeable();
	return check_done();
}
