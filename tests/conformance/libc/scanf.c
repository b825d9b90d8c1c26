/* scanf's conversions, widths, sets, and what it leaves unread. */
#include "check.h"

int main(void)
{
	char word[16], set[16], c;
	int a = 0, b = 0, n = 0;
	long long wide;
	unsigned hex;
	double d;
	char *made = NULL;

	CHECK_EQ(sscanf("12 -34", "%d%d", &a, &b), 2);
	CHECK_EQ(a + b, -22);
	CHECK_EQ(sscanf("1234567", "%3d%2d%n", &a, &b, &n), 2);
	CHECK_EQ(a, 123);
	CHECK_EQ(b, 45);
	CHECK_EQ(n, 5);
	CHECK_EQ(sscanf("0xff 077 12", "%x %o %i", &hex, (unsigned *)&a, &b), 3);
	CHECK_EQ(hex, 255);
	CHECK_EQ(a, 63);
	CHECK_EQ(sscanf("key = value;", "%15[a-z] = %15[^;]%c", word, set, &c), 3);
	CHECK_STR(word, "key");
	CHECK_STR(set, "value");
	CHECK_EQ(c, ';');
	CHECK_EQ(sscanf("-9223372036854775808", "%lld", &wide), 1);
	CHECK(wide == (-9223372036854775807 - 1));
	CHECK_EQ(sscanf("  3.5e2x", "%lf%c", &d, &c), 2);
	CHECK(d == 350 && c == 'x');
	CHECK_EQ(sscanf("", "%d", &a), EOF);
	CHECK_EQ(sscanf("x", "%d", &a), 0);
	CHECK_EQ(sscanf("10%", "%d%%%n", &a, &n), 1);
	CHECK_EQ(n, 3);
	CHECK_EQ(sscanf("allocated", "%ms", &made), 1);
	CHECK_STR(made, "allocated");
	free(made);
	CHECK_EQ(sscanf("skip 7", "%*s %d", &a), 1);
	CHECK_EQ(a, 7);
	return check_done();
}
