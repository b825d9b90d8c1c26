/* The device with number 0, which anybody may make: overlayfs takes it for a name that is gone. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	struct stat st;

	CHECK_EQ(mknod("gone", S_IFCHR | 0600, 0), 0);
	CHECK_EQ(lstat("gone", &st), 0);
	CHECK(S_ISCHR(st.st_mode) && !st.st_rdev);
	CHECK_ERRNO(mknodat(AT_FDCWD, "gone", S_IFCHR | 0600, 0), EEXIST);
	CHECK_EQ(rename("gone", "moved"), 0);
	CHECK_EQ(unlink("moved"), 0);
	return check_done();
}
