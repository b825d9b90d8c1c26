/* inotify: a file hears of nothing but what was done to it. Calls that act by a path open nothing,
 * a lock opens nothing, what is made was not changed. */
#include "check.h"

#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

static int watcher;

/* The masks of all events since, in order. */
static const char *heard(void)
{
	static const struct {
		unsigned bit;
		char letter;
	} letters[] = {
		{ IN_ACCESS, 'r' },
		{ IN_MODIFY, 'm' },
		{ IN_ATTRIB, 'a' },
		{ IN_CLOSE_WRITE, 'W' },
		{ IN_CLOSE_NOWRITE, 'c' },
		{ IN_OPEN, 'o' },
		{ IN_MOVED_FROM, '<' },
		{ IN_MOVED_TO, '>' },
		{ IN_CREATE, '+' },
		{ IN_DELETE, '-' },
		{ IN_MOVE_SELF, 's' },
	};
	static char text[256];
	static char buffer[8192] __attribute__((aligned(8)));
	size_t n = 0;
	ssize_t got;

	while ((got = read(watcher, buffer, sizeof buffer)) > 0)
		for (char *at = buffer; at < buffer + got;
		    at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
			for (size_t i = 0; i < sizeof letters / sizeof *letters && n < sizeof text - 1; i++)
				if (((struct inotify_event *)at)->mask & letters[i].bit)
					text[n++] = letters[i].letter;
	text[n] = 0;
	return text;
}

/* Which of opening and shortening the host tells first has changed between versions of Linux. */
static int opened_and_emptied(const char *events, char closed)
{
	char one[] = { 'o', 'm', closed, 0 }, other[] = { 'm', 'o', closed, 0 };

	return !strcmp(events, one) || !strcmp(events, other) || (printf("heard %s\n", events), 0);
}

static void check_paths(void)
{
	struct stat st;
	struct statfs fs;

	CHECK_EQ(truncate("d/f", 4), 0);
	CHECK_STR(heard(), "m");
	CHECK_EQ(truncate("d/f", 4), 0);
	CHECK_STR(heard(), "m");
	CHECK_EQ(truncate("d/f", 100), 0);
	CHECK_STR(heard(), "m");
	CHECK_ERRNO(truncate("d/missing", 0), ENOENT);
	CHECK_ERRNO(truncate("d", 0), EISDIR);
	CHECK_ERRNO(truncate("d/f", -1), EINVAL);
	CHECK_EQ(mkfifo("d/p", 0600), 0);
	CHECK_STR(heard(), "+");
	CHECK_ERRNO(truncate("d/p", 0), EINVAL);
	CHECK_EQ(unlink("d/p"), 0);
	CHECK_STR(heard(), "-");
	NEED(symlink("f", "d/l") == 0);
	heard();
	CHECK_EQ(truncate("d/l", 7), 0);
	CHECK_STR(heard(), "m");
	CHECK_EQ(stat("d/f", &st) | lstat("d/f", &st) | access("d/f", R_OK | W_OK) | statfs("d/f", &fs), 0);
	CHECK_EQ(st.st_size, 7);
	CHECK_EQ(close(open("d/f", O_PATH)), 0);
	CHECK_STR(heard(), "");
	CHECK_EQ(unlink("d/l"), 0);
	heard();
}

static void check_made(void)
{
	CHECK_EQ(close(creat("d/g", 0600)), 0);
	CHECK_STR(heard(), "+oW");
	CHECK_EQ(close(open("d/h", O_RDWR | O_CREAT | O_EXCL | O_TRUNC, 0600)), 0);
	CHECK_STR(heard(), "+oW");
	CHECK_EQ(close(open("d/i", O_RDONLY | O_CREAT | O_TRUNC, 0600)), 0);
	CHECK_STR(heard(), "+oc");
	/* Empty as it is. */
	CHECK_EQ(close(open("d/g", O_WRONLY | O_TRUNC)), 0);
	CHECK(opened_and_emptied(heard(), 'W'));
	CHECK_EQ(close(open("d/g", O_WRONLY | O_CREAT | O_TRUNC, 0600)), 0);
	CHECK(opened_and_emptied(heard(), 'W'));
	CHECK_EQ(close(open("d/g", O_RDONLY | O_TRUNC)), 0);
	CHECK(opened_and_emptied(heard(), 'c'));
	CHECK_EQ(unlink("d/g") | unlink("d/h") | unlink("d/i"), 0);
	heard();
	/* The file is created where a link leads, which is not an event of the link. */
	NEED(symlink("k", "d/l") == 0);
	heard();
	CHECK_EQ(close(open("d/l", O_WRONLY | O_CREAT | O_TRUNC, 0600)), 0);
	CHECK_STR(heard(), "+oW");
	CHECK_ERRNO(open("d/l", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600), ELOOP);
	CHECK_ERRNO(open("d/l", O_RDONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600), ELOOP);
	CHECK_STR(heard(), "");
	CHECK_EQ(unlink("d/l") | unlink("d/k"), 0);
	heard();
}

static int record_lock(int fd, int command, int kind, off_t start)
{
	return fcntl(
	    fd, command, &(struct flock){ .l_type = (short)kind, .l_whence = SEEK_SET, .l_start = start, .l_len = 1 });
}

/* Whether another process finds the byte locked, by a descriptor that it has. */
static int is_locked(int fd, off_t at)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

		_exit(fcntl(fd, F_GETLK, &lock) ? 2 : lock.l_type != F_UNLCK);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

static void check_locks(void)
{
	int both = open("d/f", O_RDWR), read_only = open("d/f", O_RDONLY), other = open("d/f", O_RDWR), status;
	pid_t child;

	NEED(both >= 0 && read_only >= 0 && other >= 0);
	/* Consecutive equal events are reported once. */
	CHECK_STR(heard(), "o");
	CHECK_EQ(record_lock(read_only, F_SETLK, F_RDLCK, 0), 0);
	CHECK_EQ(record_lock(both, F_SETLK, F_WRLCK, 1), 0);
	CHECK_EQ(record_lock(both, F_SETLK, F_WRLCK, 0), 0);
	CHECK_EQ(is_locked(both, 0), 1);
	CHECK_EQ(is_locked(both, 1), 1);
	CHECK_EQ(is_locked(both, 2), 0);
	CHECK_EQ(record_lock(both, F_OFD_SETLK, F_RDLCK, 3), 0);
	CHECK_ERRNO(record_lock(other, F_OFD_SETLK, F_WRLCK, 3), EAGAIN);
	CHECK_EQ(record_lock(both, F_SETLK, F_UNLCK, 0), 0);
	CHECK_EQ(flock(both, LOCK_EX), 0);
	CHECK_STR(heard(), "");
	/* A child has the same open file, and takes a lock of its own, which stays when the parent closes
	 * it. */
	int to[2], from[2];
	char byte;

	NEED(pipe(to) == 0 && pipe(from) == 0);
	if (!(child = fork())) {
		int failed = close(both), own = open("d/f", O_RDWR);

		failed |= record_lock(own, F_SETLK, F_WRLCK, 5);

		_exit(failed || write(from[1], "x", 1) != 1 || read(to[0], &byte, 1) != 1);
	}
	CHECK_EQ(read(from[0], &byte, 1), 1);
	CHECK_STR(heard(), "o");
	CHECK_ERRNO(record_lock(other, F_SETLK, F_WRLCK, 5), EAGAIN);
	CHECK_EQ(record_lock(both, F_SETLK, F_WRLCK, 6), 0);
	CHECK_EQ(close(both), 0);
	/* Closing it has given up what was this process's, and what was the open file's. */
	CHECK_EQ(is_locked(other, 6), 0);
	CHECK_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
	CHECK_EQ(record_lock(other, F_OFD_SETLK, F_WRLCK, 3), 0);
	CHECK_ERRNO(record_lock(other, F_SETLK, F_WRLCK, 5), EAGAIN);
	CHECK_EQ(write(to[1], "x", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(record_lock(other, F_SETLK, F_WRLCK, 5), 0);
	CHECK_EQ(close(other) | close(read_only), 0);
	CHECK_STR(heard(), "Wc");
	close(to[0]), close(to[1]), close(from[0]), close(from[1]);
}

int main(void)
{
	watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watcher < 0)
		check_skip("no inotify here");
	NEED(mkdir("d", 0700) == 0);
	NEED(inotify_add_watch(watcher, "d", IN_ALL_EVENTS) >= 0);
	close(check_file("d/f", "0123456789"));
	heard();
	check_paths();
	check_made();
	check_locks();
	CHECK_EQ(unlink("d/f") | rmdir("d"), 0);
	close(watcher);
	return check_done();
}
