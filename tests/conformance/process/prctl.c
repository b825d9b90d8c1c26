/* prctl: the name of the program, and what does not exist. */
#include "check.h"

#include <sys/prctl.h>

int main(void)
{
	char name[18] = { 0 };

	memset(name, '#', 17);
	CHECK_EQ(prctl(PR_SET_NAME, "short"), 0);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK_STR(name, "short");
	CHECK_EQ(name[16], '#');
	/* 15 characters are kept. */
	CHECK_EQ(prctl(PR_SET_NAME, "0123456789abcdefghij"), 0);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK_STR(name, "0123456789abcde");
	CHECK_EQ(name[16], '#');
	CHECK_ERRNO(prctl(123456), EINVAL);
	return check_done();
}
