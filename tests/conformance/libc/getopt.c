/* getopt and getopt_long. */
#include "check.h"

#include <getopt.h>

int main(void)
{
	char *arguments[] = { "prog", "-a", "-bvalue", "--long=x", "--flag", "-c", "cv", "--", "rest", NULL };
	char *unknown[] = { "prog", "-z", "-b", NULL };
	static int flag;
	static const struct option options[] = { { "long", required_argument, NULL, 'l' },
		{ "flag", no_argument, &flag, 5 }, { NULL, 0, NULL, 0 } };
	int index = -1;

	opterr = 0;
	CHECK_EQ(getopt_long(9, arguments, "ab:c:", options, &index), 'a');
	CHECK_EQ(getopt_long(9, arguments, "ab:c:", options, &index), 'b');
	CHECK_STR(optarg, "value");
	CHECK_EQ(getopt_long(9, arguments, "ab:c:", options, &index), 'l');
	CHECK_STR(optarg, "x");
	CHECK_EQ(index, 0);
	CHECK_EQ(getopt_long(9, arguments, "ab:c:", options, &index), 0);
	CHECK_EQ(flag, 5);
	CHECK_EQ(getopt_long(9, arguments, "ab:c:", options, &index), 'c');
	CHECK_STR(optarg, "cv");
	CHECK_EQ(getopt_long(9, arguments, "ab:c:", options, &index), -1);
	CHECK_EQ(optind, 8);
	optind = 1;
	CHECK_EQ(getopt(3, unknown, "ab:"), '?');
	CHECK_EQ(optopt, 'z');
	CHECK_EQ(getopt(3, unknown, ":ab:"), ':');
	CHECK_EQ(optopt, 'b');
	return check_done();
}
