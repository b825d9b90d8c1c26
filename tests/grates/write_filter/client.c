/* Only *.log in logs, and everything below work, may be changed. argv: the errno otherwise. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../check.h"

static int writes(const char *path, int flags)
{
	int fd = open(path, flags, 0600), n;

	if (fd < 0)
		return -1;
	n = (int)write(fd, "text", 4);
	close(fd);
	return n;
}

int main(int argc, char **argv)
{
	int refused = atoi(argv[1]), fd;
	char name[64];

	IS(argc, 2);
	IS(writes("logs/a.log", O_WRONLY | O_CREAT), 4);
	IS(writes("logs/../logs//a.log", O_WRONLY | O_APPEND), 4);
	IS(chmod("logs/a.log", 0640), 0);
	IS(rename("logs/a.log", "logs/b.log"), 0);
	FAILS(rename("logs/b.log", "logs/b.txt"), refused);
	FAILS(rename("logs/b.log", "b.log"), refused);
	FAILS(link("logs/b.log", "logs/b.txt"), refused);
	IS(link("logs/b.log", "logs/c.log"), 0);
	FAILS(link("data", "logs/d.log"), EXDEV);
	FAILS(rename("data", "logs/d.log"), refused);
	FAILS(writes("logs/a.txt", O_WRONLY | O_CREAT), refused);
	FAILS(writes("logs/.log", O_WRONLY | O_CREAT), refused);
	FAILS(writes("logs/d/a.log", O_WRONLY | O_CREAT), refused);
	FAILS(writes("data", O_WRONLY), refused);
	FAILS(writes("data", O_WRONLY | O_TRUNC), refused);
	FAILS(truncate("data", 0), refused);
	FAILS(unlink("data"), refused);
	FAILS(mkdir("new", 0700), refused);
	FAILS(chmod("data", 0600), refused);
	FAILS(access("data", W_OK), refused);
	IS(access("logs/b.log", W_OK), 0);
	IS(symlink("../data", "logs/e.log"), 0);
	FAILS(writes("logs/e.log", O_WRONLY), refused);
	FAILS(writes("logs/e.log", O_WRONLY | O_CREAT | O_TRUNC), refused);
	FAILS(truncate("logs/e.log", 0), refused);
	IS(unlink("logs/e.log"), 0);
	IS(symlink("../data", "link"), -1);
	IS(mkdir("work/x", 0700), 0);
	IS(mkdir("work/x/y", 0700), 0);
	IS(writes("work/x/y/z", O_WRONLY | O_CREAT), 4);
	IS(rename("work/x", "work/w"), 0);
	FAILS(rmdir("work"), refused);
	FAILS(rename("work", "krow"), refused);
	FAILS(writes("work/../data", O_WRONLY), refused);
	IS(unlink("work/w/y/z") || rmdir("work/w/y") || rmdir("work/w"), 0);
	/* A file in a directory that may be moved must itself be writable: it would be in another
	 * place. */
	FAILS(writes("flat/dir/kept", O_WRONLY), refused);
	FAILS(rename("flat/dir", "work/dir"), refused);
	FAILS(rename("flat/dir", "flat/rid"), refused);
	IS(writes("flat/made", O_WRONLY | O_CREAT), 4);
	FAILS(syscall(SYS_renameat2, AT_FDCWD, "flat/made", AT_FDCWD, "flat/dir", 2), refused);
	IS(rename("flat/made", "work/made") || unlink("work/made"), 0);
	fd = open("data", O_RDONLY);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	FAILS(writes(name, O_WRONLY), refused);
	FAILS(fchmod(fd, 0600), refused);
	FAILS(ftruncate(fd, 0), EINVAL);
	IS(close(fd), 0);
	IS(unlink("logs/b.log") || unlink("logs/c.log"), 0);
	return wrong;
}
