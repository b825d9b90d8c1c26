/* F_SETOWN and O_ASYNC on files that have nothing to tell. */
#include "check.h"
#include <sys/ioctl.h>

int main(void)
{
	int file;

	/* A regular file has nothing to tell, and takes an owner all the same. */
	file = check_file("file", "content");
	CHECK_EQ(fcntl(file, F_SETFL, O_ASYNC), 0);
	CHECK(!(fcntl(file, F_GETFL) & O_ASYNC));
	CHECK_EQ(fcntl(file, F_SETOWN, getpid()), 0);
	CHECK_EQ(fcntl(file, F_GETOWN), getpid());
	CHECK_ERRNO(ioctl(file, FIOASYNC, &(int){ 1 }), ENOTTY);
	CHECK_EQ(ioctl(file, FIOASYNC, &(int){ 0 }), 0);
	close(file);
	file = open("file", O_PATH);
	CHECK_ERRNO(fcntl(file, F_SETOWN, getpid()), EBADF);
	CHECK_ERRNO(fcntl(file, F_GETSIG), EBADF);
	CHECK_ERRNO(fcntl(file, F_SETFL, O_ASYNC), EBADF);
	close(file);
	unlink("file");
	return check_done();
}
