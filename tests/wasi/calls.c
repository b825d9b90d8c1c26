/* Calls WASI's functions one by one, most of them wrongly too, and prints what they return: the
 * same everywhere, it is hoped. Preopened are a directory as descriptor 3, and what it holds was
 * made by the test. */
#include <stdio.h>
#include <string.h>
#include <wasi/api.h>

#define SAY(what, ...) printf("%-40s %d\n", what, (int)(__VA_ARGS__))
enum { DIR = 3, BAD = 99 };
static __wasi_fd_t fd, other;
static __wasi_size_t n;
static __wasi_filesize_t at;
static __wasi_filestat_t st;
static __wasi_fdstat_t fdst;
static char buffer[4096];

/* The header's functions take strings. */
static __wasi_errno_t open_(const char *path, int lookup, int how, __wasi_rights_t rights, int flags)
{
	return __wasi_path_open(DIR, lookup, path, how, rights, 0, flags, &fd);
}

/* As a directory, in all ways that change nothing. */
static void as_directories(void)
{
	static const char *names[] = { "file", "file/", "file/x", "sub", "sub/", "link", "loop", "absolute", "out",
		"none", "." };
	static const __wasi_rights_t rights[] = { 0, __WASI_RIGHTS_FD_READ, __WASI_RIGHTS_FD_WRITE,
		__WASI_RIGHTS_FD_READDIR };

	for (unsigned name = 0; name < sizeof names / sizeof *names; name++)
		for (int how = 2; how < 16; how++)
			for (int right = 0; right < 4; right++)
				for (int lookup = 0; lookup < 2 && (how & 2); lookup++) {
					int error = open_(names[name], lookup, how, rights[right], 0);
					printf("open %s, how %d, right %d, lookup %d: %d\n", names[name], how, right,
					    lookup, error);
					if (!error)
						__wasi_fd_close(fd);
				}
}

static void paths(void)
{
	const __wasi_rights_t rw = __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_WRITE | __WASI_RIGHTS_FD_SEEK,
			      r = __WASI_RIGHTS_FD_READ;

	SAY("open none", open_("none", 1, 0, r, 0));
	SAY("open of a bad descriptor", __wasi_path_open(BAD, 0, "x", 0, r, 0, 0, &fd));
	SAY("open file", __wasi_path_open(DIR, 0, "file", 0, r, 0, 0, &other));
	SAY("open below a file", __wasi_path_open(other, 0, "x", 0, r, 0, 0, &fd));
	SAY("stat below a file", __wasi_path_filestat_get(other, 0, "x", &st));
	__wasi_fd_close(other);
	SAY("open of no directory", __wasi_path_open(1, 0, "x", 0, r, 0, 0, &fd));
	SAY("open absolute", open_("/etc/passwd", 1, 0, r, 0));
	SAY("open ..", open_("..", 1, 0, r, 0));
	SAY("open sub/../..", open_("sub/../..", 1, 0, r, 0));
	SAY("open sub/../file", open_("sub/../file", 1, 0, r, 0));
	__wasi_fd_close(fd);
	SAY("open of a link out", open_("out", 1, 0, r, 0));
	SAY("open of an absolute link", open_("absolute", 1, 0, r, 0));
	SAY("open of a link, not followed", open_("link", 0, 0, r, 0));
	SAY("open of a link", open_("link", 1, 0, r, 0));
	__wasi_fd_close(fd);
	SAY("open of a loop", open_("loop", 1, 0, r, 0));
	SAY("open through a file", open_("file/x", 1, 0, r, 0));
	SAY("open of a file as a directory", open_("file", 1, __WASI_OFLAGS_DIRECTORY, r, 0));
	SAY("open of a directory to write", open_("sub", 1, 0, rw, 0));
	SAY("open of nothing", open_("", 1, 0, r, 0));
	SAY("open exclusive", open_("file", 1, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_EXCL, rw, 0));
	SAY("open to create a directory", open_("newdir", 1, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_DIRECTORY, r, 0));
	memset(buffer, 'a', sizeof buffer - 1);
	buffer[300] = 0;
	SAY("open of a long name", open_(buffer, 1, 0, r, 0));
	SAY("mkdir", __wasi_path_create_directory(DIR, "made"));
	SAY("mkdir again", __wasi_path_create_directory(DIR, "made"));
	SAY("mkdir beyond none", __wasi_path_create_directory(DIR, "none/x"));
	SAY("mkdir out", __wasi_path_create_directory(DIR, "../x"));
	SAY("unlink of a directory", __wasi_path_unlink_file(DIR, "made"));
	SAY("rmdir of a file", __wasi_path_remove_directory(DIR, "file"));
	SAY("rmdir of a full one", __wasi_path_remove_directory(DIR, "sub"));
	SAY("rmdir", __wasi_path_remove_directory(DIR, "made"));
	SAY("symlink", __wasi_path_symlink("file", DIR, "new-link"));
	SAY("symlink again", __wasi_path_symlink("file", DIR, "new-link"));
	SAY("symlink absolute", __wasi_path_symlink("/etc", DIR, "new-absolute"));
	SAY("readlink", __wasi_path_readlink(DIR, "new-link", (uint8_t *)buffer, 100, &n));
	printf("says %.*s\n", (int)n, buffer);
	SAY("readlink of a file", __wasi_path_readlink(DIR, "file", (uint8_t *)buffer, 100, &n));
	SAY("unlink of a link", __wasi_path_unlink_file(DIR, "new-link"));
	SAY("unlink again", __wasi_path_unlink_file(DIR, "new-link"));
	SAY("link", __wasi_path_link(DIR, 0, "file", DIR, "hard"));
	SAY("link again", __wasi_path_link(DIR, 0, "file", DIR, "hard"));
	SAY("link of none", __wasi_path_link(DIR, 0, "none", DIR, "hard2"));
	SAY("stat", __wasi_path_filestat_get(DIR, 1, "hard", &st));
	printf("type %d links %d size %d\n", st.filetype, (int)st.nlink, (int)st.size);
	SAY("rename", __wasi_path_rename(DIR, "hard", DIR, "sub/hard"));
	SAY("rename of none", __wasi_path_rename(DIR, "none", DIR, "x"));
	SAY("rename of a file to a directory", __wasi_path_rename(DIR, "sub/hard", DIR, "sub"));
	SAY("unlink", __wasi_path_unlink_file(DIR, "sub/hard"));
	SAY("stat of a link", __wasi_path_filestat_get(DIR, 0, "link", &st));
	printf("type %d\n", st.filetype);
	SAY("stat through a link", __wasi_path_filestat_get(DIR, 1, "link", &st));
	printf("type %d\n", st.filetype);
	SAY("stat of none", __wasi_path_filestat_get(DIR, 1, "none", &st));
	SAY("times",
	    __wasi_path_filestat_set_times(
		DIR, 1, "file", 5000000007, 6000000008, __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_MTIM));
	__wasi_path_filestat_get(DIR, 1, "file", &st);
	printf("times %lld %lld\n", (long long)st.atim, (long long)st.mtim);
	SAY("times, both ways",
	    __wasi_path_filestat_set_times(DIR, 1, "file", 5, 6, __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_ATIM_NOW));
}

static void files(void)
{
	const __wasi_rights_t rw =
	    __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_WRITE | __WASI_RIGHTS_FD_SEEK | __WASI_RIGHTS_FD_TELL;
	__wasi_ciovec_t out[1] = { { (const uint8_t *)"hello world", 11 } };
	__wasi_iovec_t in[1] = { { (uint8_t *)buffer, 103 } };

	SAY("create", open_("data", 0, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_TRUNC, rw, 0));
	SAY("write", __wasi_fd_write(fd, out, 1, &n));
	printf("wrote %d\n", (int)n);
	SAY("tell", __wasi_fd_tell(fd, &at));
	printf("at %d\n", (int)at);
	SAY("seek", __wasi_fd_seek(fd, -5, __WASI_WHENCE_END, &at));
	printf("at %d\n", (int)at);
	SAY("seek before the start", __wasi_fd_seek(fd, -100, __WASI_WHENCE_CUR, &at));
	SAY("read", __wasi_fd_read(fd, in, 1, &n));
	printf("read %d: %.*s\n", (int)n, (int)n, buffer);
	SAY("read at the end", __wasi_fd_read(fd, in, 1, &n));
	printf("read %d\n", (int)n);
	SAY("pread", __wasi_fd_pread(fd, in, 1, 6, &n));
	printf("read %d: %.*s\n", (int)n, (int)n, buffer);
	SAY("pwrite", __wasi_fd_pwrite(fd, out, 1, 20, &n));
	SAY("stat", __wasi_fd_filestat_get(fd, &st));
	printf("type %d size %d\n", st.filetype, (int)st.size);
	SAY("set size", __wasi_fd_filestat_set_size(fd, 4));
	__wasi_fd_filestat_get(fd, &st);
	printf("size %d\n", (int)st.size);
	SAY("fdstat", __wasi_fd_fdstat_get(fd, &fdst));
	printf("type %d flags %d\n", fdst.fs_filetype, fdst.fs_flags);
	SAY("append", __wasi_fd_fdstat_set_flags(fd, __WASI_FDFLAGS_APPEND));
	SAY("write", __wasi_fd_write(fd, out, 1, &n));
	SAY("set times", __wasi_fd_filestat_set_times(fd, 1, 7000000009, __WASI_FSTFLAGS_MTIM));
	__wasi_fd_filestat_get(fd, &st);
	printf("size %d mtime %lld\n", (int)st.size, (long long)st.mtim);
	SAY("advise", __wasi_fd_advise(fd, 0, 10, __WASI_ADVICE_SEQUENTIAL));
	SAY("sync", __wasi_fd_sync(fd));
	SAY("datasync", __wasi_fd_datasync(fd));
	SAY("prestat of a file", __wasi_fd_prestat_get(fd, (void *)buffer));
	SAY("renumber to none", __wasi_fd_renumber(fd, BAD));
	__wasi_path_open(DIR, 0, "file", 0, __WASI_RIGHTS_FD_READ, 0, 0, &other);
	SAY("write to what is read", __wasi_fd_write(other, out, 1, &n));
	SAY("renumber", __wasi_fd_renumber(fd, other));
	SAY("close what is gone", __wasi_fd_close(fd));
	SAY("close", __wasi_fd_close(other));
	SAY("read of a bad one", __wasi_fd_read(BAD, in, 1, &n));
	SAY("seek of a directory", __wasi_fd_seek(DIR, 0, 0, &at));
	SAY("read of a directory", __wasi_fd_read(DIR, in, 1, &n));
	SAY("unlink", __wasi_path_unlink_file(DIR, "data"));
}

static int entry(const char *from, size_t room, __wasi_dirent_t *to, char name[256])
{
	if (room < sizeof *to)
		return 0;
	memcpy(to, from, sizeof *to);
	if (room < sizeof *to + to->d_namlen || to->d_namlen > 255)
		return 0;
	memcpy(name, from + sizeof *to, to->d_namlen);
	name[to->d_namlen] = 0;
	return (int)(sizeof *to + to->d_namlen);
}

/* Names are counted, once in large steps and once in small ones that cut entries off. */
static void directories(void)
{
	size_t sizes[] = { 4096, 64, 300 };

	for (int i = 0; i < 3; i++) {
		__wasi_dircookie_t cookie = 0;
		int names = 0, dots = 0, sum = 0;
		for (;;) {
			__wasi_dirent_t e;
			char name[256];
			size_t from = 0;
			if (__wasi_fd_readdir(DIR, (uint8_t *)buffer, sizes[i], cookie, &n))
				break;
			for (int size; (size = entry(buffer + from, n - from, &e, name)); from += size) {
				names++;
				cookie = e.d_next;
				dots += !strcmp(name, ".") || !strcmp(name, "..");
				for (char *c = name; *c; c++)
					sum += *c * e.d_type;
			}
			if (n < sizes[i])
				break;
		}
		printf("names %d, dots %d, sum %d\n", names, dots, sum);
	}
	SAY("readdir of a file",
	    (open_("file", 1, 0, __WASI_RIGHTS_FD_READ, 0), __wasi_fd_readdir(fd, (uint8_t *)buffer, 100, 0, &n)));
	__wasi_fd_close(fd);
}

static void rest(void)
{
	__wasi_timestamp_t t, later;
	__wasi_subscription_t s[3] = { 0 };
	__wasi_event_t e[3];

	SAY("clock", __wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &t));
	SAY("resolution", __wasi_clock_res_get(__WASI_CLOCKID_REALTIME, &later));
	s[0].userdata = 11;
	s[0].u.tag = __WASI_EVENTTYPE_CLOCK;
	s[0].u.u.clock.id = __WASI_CLOCKID_MONOTONIC;
	s[0].u.u.clock.timeout = 5000000;
	__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &t);
	SAY("poll a clock", __wasi_poll_oneoff(s, e, 1, &n));
	__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &later);
	printf("events %d data %d type %d late %d\n", (int)n, (int)e[0].userdata, e[0].type, later - t >= 5000000);
	s[0].u.u.clock.flags = __WASI_SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME;
	s[0].u.u.clock.timeout = later + 3000000;
	SAY("poll until", __wasi_poll_oneoff(s, e, 1, &n));
	__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &t);
	printf("events %d late %d\n", (int)n, t >= later + 3000000);
	s[0].u.u.clock.timeout = later + 3600000000000;
	s[1].userdata = 12;
	s[1].u.tag = __WASI_EVENTTYPE_FD_WRITE;
	s[1].u.u.fd_write.file_descriptor = 1;
	SAY("poll what can be written", __wasi_poll_oneoff(s, e, 2, &n));
	printf("events %d data %d\n", (int)n, (int)e[0].userdata);
	SAY("poll nothing", __wasi_poll_oneoff(s, e, 0, &n));
	SAY("random", __wasi_random_get((uint8_t *)buffer, 100));
	SAY("yield", __wasi_sched_yield());
	SAY("shutdown of a file", __wasi_sock_shutdown(DIR, 1));
}

int main(int argc, char **argv)
{
	setvbuf(stdout, 0, _IOFBF, 1 << 16);
	printf("%d arguments, last %s\n", argc, argv[argc - 1]);
	as_directories();
	paths();
	files();
	directories();
	rest();
	return 3;
}
