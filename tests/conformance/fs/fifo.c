/* mkfifo and mknod of a fifo: opened without waiting, and from both ends in one process. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	char text[4] = { 0 };
	struct stat st;
	int in, out;

	NEED(mkfifo("p", 0600) == 0);
	NEED(stat("p", &st) == 0);
	CHECK(S_ISFIFO(st.st_mode));
	CHECK_ERRNO(mkfifo("p", 0600), EEXIST);
	CHECK_ERRNO(open("p", O_WRONLY | O_NONBLOCK), ENXIO);
	NEED((in = open("p", O_RDONLY | O_NONBLOCK)) >= 0);
	CHECK_EQ(read(in, text, 1), 0);
	NEED((out = open("p", O_WRONLY)) >= 0);
	CHECK_ERRNO(read(in, text, 1), EAGAIN);
	CHECK_EQ(write(out, "abc", 3), 3);
	CHECK_EQ(read(in, text, 4), 3);
	CHECK_STR(text, "abc");
	close(in);
	close(out);
	CHECK_EQ(unlink("p"), 0);
	return check_done();
}
