/* Waiting for children that do not exist. */
#include "check.h"

#include <sys/wait.h>

int main(void)
{
	int status = 0x5a5a;

	CHECK_ERRNO(wait(&status), ECHILD);
	CHECK_ERRNO(waitpid(-1, &status, WNOHANG), ECHILD);
	CHECK_ERRNO(waitpid(getpid(), &status, 0), ECHILD);
	CHECK_ERRNO(waitpid(999999999, &status, 0), ECHILD);
	CHECK_ERRNO(waitpid(-1, &status, 1 << 20), EINVAL);
	CHECK_EQ(status, 0x5a5a);
	return check_done();
}
