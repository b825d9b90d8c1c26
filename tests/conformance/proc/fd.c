/* /proc/self/fd: names of what is open, and opening it again. */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static char path[64];

static const char *fd_path(int fd)
{
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return path;
}

static const char *link_of(int fd)
{
	static char text[4096];
	ssize_t n = readlink(fd_path(fd), text, sizeof text - 1);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static void check_names(int file, int dir)
{
	char cwd[4096], wanted[8192];
	struct stat st;
	int p[2], s, m;

	NEED(getcwd(cwd, sizeof cwd) != NULL);
	snprintf(wanted, sizeof wanted, "%s/f", cwd);
	CHECK_STR(link_of(file), wanted);
	CHECK_STR(link_of(dir), cwd);
	NEED(lstat(fd_path(file), &st) == 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(st.st_mode & 0777, 0700);
	NEED(pipe(p) == 0);
	CHECK_EQ(strncmp(link_of(p[0]), "pipe:[", 6), 0);
	NEED(lstat(fd_path(p[0]), &st) == 0);
	CHECK_EQ(st.st_mode & 0777, 0500);
	NEED((s = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	CHECK_EQ(strncmp(link_of(s), "socket:[", 8), 0);
	CHECK_ERRNO(open(fd_path(s), O_RDONLY), ENXIO);
	NEED((m = memfd_create("name", 0)) >= 0);
	CHECK_STR(link_of(m), "/memfd:name (deleted)");
	CHECK_ERRNO(readlink("/proc/self/fd/9999", wanted, sizeof wanted), ENOENT);
	CHECK_ERRNO(open("/proc/self/fd/9999", O_RDONLY), ENOENT);
	CHECK_ERRNO(open("/proc/self/fd/-1", O_RDONLY), ENOENT);
	CHECK_ERRNO(open("/proc/self/fd/00", O_RDONLY), ENOENT);
	close(m);
	close(s);
	close(p[0]);
	close(p[1]);
}

/* A descriptor without a name in a directory is shown as its type. */
static void check_nameless(void)
{
	int e = eventfd(0, 0), p = epoll_create1(0), t = timerfd_create(CLOCK_MONOTONIC, 0), i = inotify_init(),
	    d = syscall(SYS_pidfd_open, getpid(), 0), s;
	sigset_t none;

	sigemptyset(&none);
	NEED((s = signalfd(-1, &none, 0)) >= 0 && d >= 0);
	CHECK_STR(link_of(e), "anon_inode:[eventfd]");
	CHECK_STR(link_of(p), "anon_inode:[eventpoll]");
	CHECK_STR(link_of(t), "anon_inode:[timerfd]");
	CHECK_STR(link_of(s), "anon_inode:[signalfd]");
	CHECK_STR(link_of(i), "anon_inode:inotify");
	/* A file system of its own since Linux 6.9. */
	CHECK(!strcmp(link_of(d), "anon_inode:[pidfd]") || !strncmp(link_of(d), "pidfd:[", 7));
	close(e), close(p), close(t), close(s), close(i), close(d);
}

static void check_again(int file)
{
	char text[8] = { 0 };
	struct stat a, b;
	int again, m, p[2];

	CHECK_EQ(lseek(file, 3, SEEK_SET), 3);
	NEED((again = open(fd_path(file), O_RDONLY)) >= 0);
	CHECK_EQ(lseek(again, 0, SEEK_CUR), 0);
	CHECK_EQ(read(again, text, 4), 4);
	CHECK_STR(text, "0123");
	CHECK_EQ(lseek(file, 0, SEEK_CUR), 3);
	CHECK_ERRNO(write(again, "x", 1), EBADF);
	NEED(fstat(again, &a) == 0 && fstat(file, &b) == 0);
	CHECK(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	NEED(stat(fd_path(file), &a) == 0);
	CHECK_EQ(a.st_ino, b.st_ino);
	close(again);
	NEED((again = open(fd_path(file), O_WRONLY | O_TRUNC)) >= 0);
	NEED(fstat(file, &b) == 0);
	CHECK_EQ(b.st_size, 0);
	close(again);
	CHECK_ERRNO(open(fd_path(file), O_RDONLY | O_NOFOLLOW), ELOOP);
	CHECK_ERRNO(open(fd_path(file), O_RDONLY | O_DIRECTORY), ENOTDIR);

	NEED((m = memfd_create("m", 0)) >= 0);
	CHECK_EQ(write(m, "memory", 6), 6);
	NEED((again = open(fd_path(m), O_RDONLY)) >= 0);
	CHECK_EQ(read(again, text, 3), 3);
	CHECK_EQ(memcmp(text, "mem", 3), 0);
	CHECK_ERRNO(write(again, "x", 1), EBADF);
	close(again);
	close(m);

	NEED(pipe(p) == 0);
	NEED((again = open(fd_path(p[0]), O_RDONLY)) >= 0);
	CHECK_EQ(write(p[1], "pipe", 4), 4);
	CHECK_EQ(read(again, text, 4), 4);
	CHECK_EQ(memcmp(text, "pipe", 4), 0);
	close(again);
	close(p[0]);
	close(p[1]);
}

static void check_through(int dir)
{
	char name[128];
	struct stat st;
	int fd;

	snprintf(name, sizeof name, "/proc/self/fd/%d/f", dir);
	CHECK_EQ(stat(name, &st), 0);
	snprintf(name, sizeof name, "/proc/self/fd/%d/new", dir);
	NEED((fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600)) >= 0);
	close(fd);
	CHECK_EQ(access("new", F_OK), 0);
	CHECK_EQ(access("/proc/self/cwd/new", W_OK), 0);
	CHECK_EQ(rename(name, "/proc/self/cwd/newer"), 0);
	CHECK_EQ(unlink("/proc/self/cwd/newer"), 0);
	snprintf(name, sizeof name, "/proc/self/fd/%d/f/x", dir);
	CHECK_ERRNO(open(name, O_RDONLY), ENOTDIR);
	CHECK_EQ(mkdir("/proc/self/cwd/d", 0700), 0);
	CHECK_EQ(chdir("/proc/self/cwd/d"), 0);
	CHECK_EQ(chdir(".."), 0);
	CHECK_EQ(rmdir("/proc/self/cwd/d"), 0);
}

static void check_list(int file)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = 0, self = 0;

	NEED(dir != NULL);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		CHECK_EQ(entry->d_type, DT_LNK);
		found += atoi(entry->d_name) == file;
		self += atoi(entry->d_name) == dirfd(dir);
	}
	CHECK_EQ(found, 1);
	CHECK_EQ(self, 1);
	closedir(dir);
}

static void check_info(int file)
{
	char name[64], text[512];
	unsigned long flags = 0;
	long position = -1;
	FILE *in;

	snprintf(name, sizeof name, "/proc/self/fdinfo/%d", file);
	CHECK_EQ(lseek(file, 7, SEEK_SET), 7);
	NEED((in = fopen(name, "r")) != NULL);
	while (fgets(text, sizeof text, in)) {
		sscanf(text, "pos: %ld", &position);
		sscanf(text, "flags: %lo", &flags);
	}
	CHECK_EQ(position, 7);
	CHECK_EQ(flags & O_ACCMODE, O_RDWR);
	fclose(in);
}

int main(void)
{
	int file, dir;

	if (access("/proc/self/fd", R_OK))
		check_skip("no /proc here");
	file = check_file("f", "0123456789");
	NEED((dir = open(".", O_RDONLY | O_DIRECTORY)) >= 0);
	check_names(file, dir);
	check_nameless();
	check_again(file);
	check_through(dir);
	check_list(file);
	check_info(file);
	close(dir);
	close(file);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
