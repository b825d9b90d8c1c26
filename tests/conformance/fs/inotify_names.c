/* inotify: which events names, files and directories make, in which order; how they are read;
 * watches of one event, and those that are added to. */
#include "check.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int watcher;
static struct {
	int number;
	char letter;
} watched[8];
static unsigned watch_count;

/* Watches `path` for all that happens, and calls it `letter` from now on. */
static int watch(const char *path, char letter, uint32_t mask)
{
	int number = inotify_add_watch(watcher, path, mask);

	NEED(number >= 0);
	watched[watch_count].number = number;
	watched[watch_count++].letter = letter;
	return number;
}

static char letter_of(int number)
{
	for (unsigned i = watch_count; i-- > 0;)
		if (watched[i].number == number)
			return watched[i].letter;
	return '?';
}

static void describe(const struct inotify_event *event, char *to, size_t size)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {
		{ IN_ACCESS, "read" },
		{ IN_MODIFY, "modify" },
		{ IN_ATTRIB, "attrib" },
		{ IN_CLOSE_WRITE, "close-w" },
		{ IN_CLOSE_NOWRITE, "close" },
		{ IN_OPEN, "open" },
		{ IN_MOVED_FROM, "from" },
		{ IN_MOVED_TO, "to" },
		{ IN_CREATE, "create" },
		{ IN_DELETE, "delete" },
		{ IN_DELETE_SELF, "end" },
		{ IN_MOVE_SELF, "moved" },
		{ IN_IGNORED, "ignored" },
		{ IN_Q_OVERFLOW, "overflow" },
	};
	size_t n = (size_t)snprintf(to, size, "%c", letter_of(event->wd));

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (event->mask & names[i].bit)
			n += (size_t)snprintf(to + n, size - n, ":%s", names[i].name);
	snprintf(to + n, size - n, "%s%s%s ", event->mask & IN_ISDIR ? "/" : "", event->len ? "=" : "",
	    event->len ? event->name : "");
}

static uint32_t last_cookie, cookies;

/* All events since. */
static const char *heard(void)
{
	static char text[2048];
	static char buffer[8192] __attribute__((aligned(8)));
	size_t n = 0;
	ssize_t got;

	text[0] = 0;
	cookies = 0;
	while ((got = read(watcher, buffer, sizeof buffer)) > 0)
		for (char *at = buffer; at < buffer + got && n < sizeof text - 300;
		    at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len) {
			const struct inotify_event *event = (struct inotify_event *)at;

			if (event->cookie) {
				cookies += event->cookie != last_cookie;
				last_cookie = event->cookie;
			}
			describe(event, text + n, sizeof text - n);
			n += strlen(text + n);
		}
	return text;
}

static void touch(const char *path)
{
	close(check_file(path, "x"));
}

static void check_names(void)
{
	int d = watch("d", 'd', IN_ALL_EVENTS), e;

	NEED(mkdir("e", 0700) == 0);
	e = watch("e", 'e', IN_ALL_EVENTS);
	CHECK_EQ(mkdir("d/s", 0700), 0);
	CHECK_STR(heard(), "d:create/=s ");
	CHECK_EQ(symlink("x", "d/l") | mkfifo("d/p", 0600), 0);
	CHECK_STR(heard(), "d:create=l d:create=p ");
	CHECK_EQ(unlink("d/l") | unlink("d/p"), 0);
	CHECK_STR(heard(), "d:delete=l d:delete=p ");
	touch("d/f");
	CHECK_STR(heard(), "d:create=f d:open=f d:modify=f d:close-w=f ");
	CHECK_EQ(link("d/f", "e/g"), 0);
	CHECK_STR(heard(), "e:create=g ");
	CHECK_EQ(unlink("e/g"), 0);
	CHECK_STR(heard(), "e:delete=g ");
	CHECK_EQ(rename("d/f", "e/f"), 0);
	CHECK_STR(heard(), "d:from=f e:to=f ");
	CHECK_EQ(cookies, 1);
	CHECK_EQ(rename("e/f", "e/g"), 0);
	CHECK_STR(heard(), "e:from=f e:to=g ");
	CHECK_EQ(cookies, 1);
	CHECK_EQ(rename("d/s", "e/s"), 0);
	CHECK_STR(heard(), "d:from/=s e:to/=s ");
	CHECK_EQ(rename("e/g", "e/g"), 0);
	CHECK_ERRNO(rename("e/g", "e/s"), EISDIR);
	CHECK_STR(heard(), "");
	CHECK_EQ(rmdir("e/s") | unlink("e/g"), 0);
	CHECK_STR(heard(), "e:delete/=s e:delete=g ");
	CHECK_EQ(rmdir("e"), 0);
	CHECK_STR(heard(), "e:end e:ignored ");
	CHECK_ERRNO(inotify_rm_watch(watcher, e), EINVAL);
	CHECK_EQ(inotify_rm_watch(watcher, d), 0);
	CHECK_STR(heard(), "d:ignored ");
}

/* A file whose name goes is at its end first, unless somebody beside the caller, such as a grate,
 * has reached for it too. */
static int is_one_of(const char *events, const char *one, const char *other)
{
	return !strcmp(events, one) || !strcmp(events, other) || (printf("heard %s\n", events), 0);
}

/* A watched file in a watched directory: the directory's event comes first. */
static void check_file_itself(void)
{
	struct timespec both[2] = { { 1, 0 }, { 2, 0 } }, second[2] = { { 0, UTIME_OMIT }, { 3, 0 } },
			first[2] = { { 3, 0 }, { 0, UTIME_OMIT } };
	int d = watch("d", 'd', IN_ALL_EVENTS), fd;
	char byte[4];

	touch("d/f");
	heard();
	watch("d/f", 'f', IN_ALL_EVENTS);
	NEED((fd = open("d/f", O_RDWR)) >= 0);
	CHECK_STR(heard(), "d:open=f f:open ");
	CHECK_EQ(write(fd, "abc", 3), 3);
	CHECK_STR(heard(), "d:modify=f f:modify ");
	CHECK_EQ(pread(fd, byte, 1, 0), 1);
	CHECK_EQ(pread(fd, byte, 1, 1), 1);
	CHECK_STR(heard(), "d:read=f f:read d:read=f f:read ");
	CHECK_EQ(pread(fd, byte, 1, 100), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_STR(heard(), "");
	CHECK_EQ(read(fd, byte, 3), 3);
	CHECK_STR(heard(), "d:read=f f:read ");
	CHECK_EQ(ftruncate(fd, 1), 0);
	CHECK_STR(heard(), "d:modify=f f:modify ");
	CHECK_EQ(fchmod(fd, 0640), 0);
	CHECK_STR(heard(), "d:attrib=f f:attrib ");
	CHECK_EQ(chown("d/f", (uid_t)-1, getegid()), 0);
	CHECK_STR(heard(), "d:attrib=f f:attrib ");
	CHECK_EQ(futimens(fd, both), 0);
	CHECK_STR(heard(), "d:attrib=f f:attrib ");
	CHECK_EQ(futimens(fd, second), 0);
	CHECK_STR(heard(), "d:modify=f f:modify ");
	CHECK_EQ(futimens(fd, first), 0);
	CHECK_STR(heard(), "d:read=f f:read ");
	CHECK_EQ(link("d/f", "d/g"), 0);
	CHECK_STR(heard(), "f:attrib d:create=g ");
	CHECK_EQ(unlink("d/g"), 0);
	CHECK_STR(heard(), "f:attrib d:delete=g ");
	CHECK_EQ(rename("d/f", "d/h"), 0);
	CHECK_STR(heard(), "d:from=f d:to=h f:moved ");
	CHECK_EQ(close(fd), 0);
	CHECK_STR(heard(), "d:close-w=h f:close-w ");
	touch("d/i");
	heard();
	CHECK_EQ(rename("d/i", "d/h"), 0);
	CHECK_STR(heard(), "d:from=i d:to=h f:attrib f:end f:ignored ");
	watch("d/h", 'h', IN_ALL_EVENTS);
	CHECK_EQ(unlink("d/h"), 0);
	CHECK(is_one_of(heard(), "h:attrib h:end h:ignored d:delete=h ", "h:attrib d:delete=h h:end h:ignored "));
	/* As long as it is open it is not at its end. */
	touch("d/h");
	heard();
	watch("d/h", 'i', IN_DELETE_SELF | IN_CLOSE);
	NEED((fd = open("d/h", O_RDONLY)) >= 0);
	CHECK_EQ(unlink("d/h"), 0);
	CHECK_STR(heard(), "d:open=h d:delete=h ");
	CHECK_EQ(inotify_rm_watch(watcher, d), 0);
	CHECK_STR(heard(), "d:ignored ");
	CHECK_EQ(close(fd), 0);
	CHECK_STR(heard(), "i:close i:end i:ignored ");
}

static void check_directory(void)
{
	int d = watch("d", 'd', IN_ALL_EVENTS), fd;
	char entries[1024];

	NEED((fd = open("d", O_RDONLY | O_DIRECTORY)) >= 0);
	CHECK_STR(heard(), "d:open/ ");
	CHECK(getdents64(fd, entries, sizeof entries) > 0);
	CHECK_STR(heard(), "d:read/ ");
	CHECK_EQ(close(fd), 0);
	CHECK_STR(heard(), "d:close/ ");
	CHECK_EQ(chmod("d", 0750), 0);
	CHECK_STR(heard(), "d:attrib/ ");
	CHECK_EQ(rename("d", "n"), 0);
	CHECK_STR(heard(), "d:moved ");
	CHECK_EQ(rename("n", "d"), 0);
	CHECK_EQ(inotify_rm_watch(watcher, d), 0);
	CHECK_STR(heard(), "d:moved d:ignored ");
}

static void check_masks(void)
{
	int d = watch("d", 'd', IN_CREATE | IN_ONESHOT);

	touch("d/f");
	CHECK_STR(heard(), "d:create=f d:ignored ");
	CHECK_ERRNO(inotify_rm_watch(watcher, d), EINVAL);
	d = watch("d", 'd', IN_CREATE);
	CHECK_EQ(inotify_add_watch(watcher, "d", IN_DELETE | IN_MASK_ADD), d);
	CHECK_EQ(unlink("d/f"), 0);
	touch("d/f");
	CHECK_STR(heard(), "d:delete=f d:create=f ");
	CHECK_EQ(inotify_add_watch(watcher, "d", IN_DELETE), d);
	touch("d/g");
	CHECK_EQ(unlink("d/g"), 0);
	CHECK_STR(heard(), "d:delete=g ");
#ifdef IN_MASK_CREATE
	CHECK_ERRNO(inotify_add_watch(watcher, "d", IN_DELETE | IN_MASK_CREATE), EEXIST);
	CHECK_ERRNO(inotify_add_watch(watcher, "d", IN_DELETE | IN_MASK_CREATE | IN_MASK_ADD), EINVAL);
#endif
	CHECK_EQ(unlink("d/f"), 0);
	heard();
	CHECK_EQ(inotify_rm_watch(watcher, d), 0);
	heard();
}

static void check_reading(void)
{
	char small[sizeof(struct inotify_event) + 15],
	    fits[2 * (sizeof(struct inotify_event) + 16)] __attribute__((aligned(8)));
	struct pollfd ready = { .fd = watcher, .events = POLLIN };
	int d = watch("d", 'd', IN_CREATE | IN_DELETE), bytes = -1, copy, status;

	CHECK_EQ(poll(&ready, 1, 0), 0);
	CHECK_EQ(ioctl(watcher, FIONREAD, &bytes), 0);
	CHECK_EQ(bytes, 0);
	for (char path[] = "d/0"; path[2] < '5'; path[2]++)
		NEED(mkdir(path, 0700) == 0);
	CHECK_EQ(poll(&ready, 1, 0), 1);
	CHECK_EQ(ready.revents, POLLIN);
	CHECK_EQ(ioctl(watcher, FIONREAD, &bytes), 0);
	CHECK_EQ(bytes, 5 * 32);
	CHECK_ERRNO(read(watcher, small, sizeof small), EINVAL);
	CHECK_EQ(read(watcher, fits, sizeof fits), 64);
	CHECK_EQ(((struct inotify_event *)fits)->len, 16);
	CHECK_STR(((struct inotify_event *)(fits + 32))->name, "1");
	CHECK_EQ(read(watcher, fits, sizeof fits - 1), 32);
	CHECK_EQ(poll(&ready, 1, 0), 1);
	/* A copy of the descriptor, and a child's, are the same instance. */
	NEED((copy = dup(watcher)) >= 0);
	if (!fork())
		_exit(read(copy, fits, sizeof fits) != 64);
	CHECK(wait(&status) > 0);
	CHECK_EQ(status, 0);
	CHECK_EQ(poll(&ready, 1, 0), 0);
	CHECK_ERRNO(read(copy, fits, sizeof fits), EAGAIN);
	CHECK_EQ(close(copy), 0);
	for (char path[] = "d/0"; path[2] < '5'; path[2]++)
		CHECK_EQ(rmdir(path), 0);
	struct iovec one = { fits, sizeof fits };
	CHECK_EQ(readv(watcher, &one, 1), 64);
	heard();
	CHECK_ERRNO(write(watcher, "x", 1), EBADF);
	CHECK_EQ(inotify_rm_watch(watcher, d), 0);
	heard();
}

static void *makes_later(void *unused)
{
	usleep(50000);
	mkdir("d/later", 0700);
	return unused;
}

static void check_waiting(void)
{
	char buffer[512] __attribute__((aligned(8)));
	int d = watch("d", 'd', IN_CREATE);
	pthread_t thread;

	CHECK_EQ(fcntl(watcher, F_SETFL, 0), 0);
	NEED(pthread_create(&thread, NULL, makes_later, NULL) == 0);
	CHECK_EQ(read(watcher, buffer, sizeof buffer), 32);
	CHECK_STR(((struct inotify_event *)buffer)->name, "later");
	pthread_join(thread, NULL);
	CHECK_EQ(fcntl(watcher, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQ(rmdir("d/later"), 0);
	CHECK_EQ(inotify_rm_watch(watcher, d), 0);
	heard();
}

/* Too many events are reported by a single event, IN_Q_OVERFLOW. */
static void check_overflow(void)
{
	int d = watch("d", 'd', IN_ATTRIB), f, many = 0;
	char buffer[8192] __attribute__((aligned(8)));
	uint32_t last = 0;
	ssize_t got;

	touch("d/f");
	f = watch("d/f", 'f', IN_ATTRIB);
	for (int i = 0; i < 9000; i++)
		chmod("d/f", 0600);
	while ((got = read(watcher, buffer, sizeof buffer)) > 0)
		for (char *at = buffer; at < buffer + got;
		    at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len) {
			last = ((struct inotify_event *)at)->mask;
			many++;
		}
	CHECK(last == IN_Q_OVERFLOW || many == 18000);
	CHECK_EQ(unlink("d/f"), 0);
	CHECK_EQ(inotify_rm_watch(watcher, d), 0);
	CHECK_ERRNO(inotify_rm_watch(watcher, f), EINVAL);
	heard();
}

/* An instance that was sent in a message is the same one, and stays when the sender has closed
 * it. */
static void check_sent(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = {
			  .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec byte = { "", 1 };
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	char buffer[256] __attribute__((aligned(8)));
	int ends[2], sent = inotify_init1(IN_NONBLOCK), received;

	NEED(sent >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	NEED(inotify_add_watch(sent, "d", IN_CREATE) >= 0);
	memcpy(CMSG_DATA(&control.head), &sent, sizeof sent);
	CHECK_EQ(sendmsg(ends[0], &message, 0), 1);
	CHECK_EQ(close(sent), 0);
	byte.iov_base = buffer;
	NEED(recvmsg(ends[1], &message, 0) == 1);
	memcpy(&received, CMSG_DATA(&control.head), sizeof received);
	CHECK_EQ(mkdir("d/sent", 0700), 0);
	CHECK_EQ(read(received, buffer, sizeof buffer), 32);
	CHECK_STR(((struct inotify_event *)buffer)->name, "sent");
	CHECK_EQ(rmdir("d/sent"), 0);
	close(received), close(ends[0]), close(ends[1]);
}

/* A file of memory is reached by its descriptor. Newer versions of Linux tell nothing of what is
 * written to it. */
static void check_without_a_name(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC), number;
	char link[32];

	NEED(fd >= 0);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	number = watch(link, 'm', IN_MODIFY);
	CHECK_EQ(inotify_rm_watch(watcher, number), 0);
	CHECK_STR(heard(), "m:ignored ");
	close(fd);
}

int main(void)
{
	watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watcher < 0)
		check_skip("no inotify here");
	NEED(mkdir("d", 0700) == 0);
	check_names();
	check_file_itself();
	watch_count = 0;
	check_directory();
	watch_count = 0;
	check_masks();
	check_reading();
	watch_count = 0;
	check_waiting();
	check_overflow();
	watch_count = 0;
	check_sent();
	check_without_a_name();
	CHECK_EQ(rmdir("d"), 0);
	close(watcher);
	return check_done();
}
