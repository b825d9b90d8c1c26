/* argc, argv, environment, program name. */
#include "check.h"

extern char **environ;

int main(int argc, char **argv)
{
	char long_value[5000];

	CHECK_EQ(argc, 1);
	NEED(argv[0] && argv[0][0]);
	CHECK(argv[1] == NULL);
	CHECK(strstr(argv[0], "arguments") != NULL);
	CHECK(strstr(program_invocation_short_name, "arguments") != NULL);

	CHECK_EQ(unsetenv("CHECK_A"), 0);
	CHECK(getenv("CHECK_A") == NULL);
	CHECK_EQ(setenv("CHECK_A", "1", 0), 0);
	CHECK_EQ(setenv("CHECK_A", "2", 0), 0);
	CHECK_STR(getenv("CHECK_A"), "1");
	CHECK_EQ(setenv("CHECK_A", "2", 1), 0);
	CHECK_STR(getenv("CHECK_A"), "2");
	CHECK_EQ(putenv("CHECK_B=b"), 0);
	CHECK_STR(getenv("CHECK_B"), "b");
	memset(long_value, 'v', sizeof long_value - 1);
	long_value[sizeof long_value - 1] = 0;
	CHECK_EQ(setenv("CHECK_LONG", long_value, 1), 0);
	CHECK_STR(getenv("CHECK_LONG"), long_value);
	CHECK_EQ(unsetenv("CHECK_LONG"), 0);
	CHECK_ERRNO(setenv("", "x", 1), EINVAL);
	CHECK_ERRNO(setenv("a=b", "x", 1), EINVAL);
	CHECK(environ != NULL);
	CHECK_EQ(clearenv(), 0);
	CHECK(getenv("CHECK_A") == NULL);
	return check_done();
}
