/* ETXTBSY of a file without descriptors: a shared mapping that was made by one open for writing
 * stays a writer. */
#include "../check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

int main(void)
{
	char *argv[] = { "x", NULL };
	int fd = check_file("file", "text");
	char *page;

	NEED(fd >= 0);
	CHECK_EQ(fchmod(fd, 0700), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	close(fd);
	CHECK_ERRNO(execve("./file", argv, environ), ETXTBSY);
	CHECK_EQ(munmap(page, 4096), 0);
	CHECK_ERRNO(execve("./file", argv, environ), ENOEXEC);
	/* Of a private one the file knows nothing. */
	fd = open("file", O_RDONLY);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(page != MAP_FAILED);
	close(fd);
	CHECK_ERRNO(execve("./file", argv, environ), ENOEXEC);
	CHECK_EQ(munmap(page, 4096), 0);
	CHECK_EQ(unlink("file"), 0);
	return check_done();
}
