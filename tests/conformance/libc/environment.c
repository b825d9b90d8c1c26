/* Tests what libc finds out without a call or from files: paths, users, system limits, logins that
 * are not there. */
#include "check.h"

#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>

int main(void)
{
	char path[PATH_MAX], want[PATH_MAX + 8], here[PATH_MAX];
	struct passwd *user;

	NEED(getcwd(here, sizeof here));
	NEED(mkdir("d", 0755) == 0 && symlink("d/../d", "link") == 0);
	close(check_file("d/f", ""));
	snprintf(want, sizeof want, "%s/d/f", strcmp(here, "/") ? here : "");
	CHECK(realpath("link/.././d//f", path) != NULL);
	CHECK_STR(path, want);
	CHECK_ERRNO(realpath("d/missing", path), ENOENT);
	CHECK_EQ(unlink("d/f"), 0);
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(rmdir("d"), 0);

	CHECK_STR(basename(strcpy(path, "/usr/lib/")), "lib");
	CHECK_STR(dirname(strcpy(path, "/usr/lib")), "/usr");
	CHECK_EQ(pathconf(".", _PC_NAME_MAX), 255);
	CHECK_EQ(fpathconf(0, -1), -1);
	CHECK_ERRNO(pathconf("missing", _PC_NAME_MAX), ENOENT);
	CHECK_ERRNO(fpathconf(0x7fff, _PC_NAME_MAX), EBADF);
	CHECK_ERRNO(fpathconf(-1, _PC_LINK_MAX), EBADF);
	CHECK_EQ(sysconf(_SC_ARG_MAX) > 4096, 1);
	CHECK_EQ(ttyname_r(0, path, sizeof path) != 0, 1);
	errno = 0;
	user = getpwuid(0);
	if (user)
		CHECK_STR(user->pw_name, "root");
	CHECK(getpwnam("no-such-user-here") == NULL);
	CHECK(getgrnam("no-such-group-here") == NULL);
	return check_done();
}
