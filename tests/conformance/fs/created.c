/* fcntl(F_CREATED_QUERY): whether it was this open that made the file. */
#include "../check.h"

#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY 1028
#endif

int main(void)
{
	int made = open("f", O_RDWR | O_CREAT, 0600), again, copy, temporary;

	NEED(made >= 0);
	if (fcntl(made, F_CREATED_QUERY) == -1 && errno == EINVAL) {
		unlink("f");
		check_skip("there is no F_CREATED_QUERY here");
	}
	CHECK_EQ(fcntl(made, F_CREATED_QUERY), 1);
	NEED((again = open("f", O_RDWR | O_CREAT, 0600)) >= 0 && (copy = dup(made)) >= 0);
	CHECK_EQ(fcntl(again, F_CREATED_QUERY), 0);
	CHECK_EQ(fcntl(copy, F_CREATED_QUERY), 1);
	close(again);
	NEED((again = open("f", O_RDONLY)) >= 0);
	CHECK_EQ(fcntl(again, F_CREATED_QUERY), 0);
	CHECK_ERRNO(fcntl(999, F_CREATED_QUERY), EBADF);
	temporary = open(".", O_TMPFILE | O_RDWR, 0600);
	if (temporary >= 0)
		close(temporary);
	close(made), close(again), close(copy);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
