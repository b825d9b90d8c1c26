/* Floating point out and in: shortest exact digits, rounding, extremes, hexadecimal, and long
 * double as far as all agree. */
#include "check.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>

static void prints(const char *want, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (strcmp(text, want))
		check_string(__FILE__, __LINE__, format, text, want);
}

static void output(void)
{
	prints("0.100000 1e-01 0.1", "%f %.0e %g", 0.1, 0.1, 0.1);
	prints("0.1000000000000000055511151231257827", "%.34f", 0.1);
	prints("1.7976931348623157e+308 2.2250738585072014e-308", "%.17g %.17g", DBL_MAX, DBL_MIN);
	prints("4.9406564584124654e-324", "%.17g", 4.9406564584124654e-324);
	prints("0 2 2 4 -0", "%.0f %.0f %.0f %.0f %.0f", 0.5, 1.5, 2.5, 3.5, -0.5);
	prints("inf -inf nan INF", "%f %f %f %F", INFINITY, -INFINITY, fabs((double)NAN), INFINITY);
	prints("1e+10 1e+06 100000 0.0001 1e-05", "%g %g %g %g %g", 1e10, 1e6, 1e5, 1e-4, 1e-5);
	prints("+1.50 |  1.50|1.50  |001.50", "%+.2f |%6.2f|%-6.2f|%06.2f", 1.5, 1.5, 1.5, 1.5);
	prints("1. 1.00000 0x1p+0 0x1.8p+1 -0x1.999999999999ap-4", "%#.0f %#g %a %a %a", 1.0, 1.0, 1.0, 3.0, -0.1);
	prints("123456789012345677877719597056", "%.0f", 123456789012345678901234567890.0);
}

static void input(void)
{
	char *end;
	double d;
	float f;

	CHECK(strtod("0.1", NULL) == 0.1);
	CHECK(strtod("1.7976931348623157e308", NULL) == DBL_MAX);
	CHECK(strtod("4.9406564584124654e-324", NULL) > 0);
	/* Halfway cases go to even, however many digits say so. */
	CHECK(strtod("9007199254740993", NULL) == 9007199254740992.0);
	CHECK(strtod("9007199254740993.00000000000000000000000000000000000000000000001", NULL) == 9007199254740994.0);
	CHECK(strtod("0x1.8p1", NULL) == 3.0);
	CHECK(strtod("  -12.5e1xyz", &end) == -125.0);
	CHECK_STR(end, "xyz");
	errno = 0;
	CHECK(strtod("1e400", NULL) == HUGE_VAL && errno == ERANGE);
	errno = 0;
	CHECK(strtod("1e-400", NULL) == 0 && errno == ERANGE);
	CHECK(isinf(strtod("-infinity", NULL)) && isnan(strtod("nan", NULL)));
	CHECK(strtof("16777217", NULL) == 16777216.0f);
	CHECK_EQ(sscanf("3.25 1e3 0x10", "%lf %f", &d, &f), 2);
	CHECK(d == 3.25 && f == 1000.0f);
}

/* A long double has 64 bits of mantissa here and 113 there; these values fit both. */
static void long_doubles(void)
{
	long double third = 1.0L / 3, sum = 0;

	CHECK(LDBL_MANT_DIG >= 64);
	prints("0.333333333333333333 1.5 1e+4000", "%.18Lf %Lg %Lg", third, 1.5L, 1e4000L);
	prints("18446744073709551615", "%.0Lf", 18446744073709551615.0L);
	CHECK(strtold("1e4000", NULL) == 1e4000L);
	CHECK(strtold("0.5", NULL) == 0.5L);
	for (int i = 1; i <= 100; i++)
		sum += (long double)i * (long double)i;
	CHECK(sum == 338350.0L);
	CHECK(fabsl(sqrtl(2.0L) * sqrtl(2.0L) - 2.0L) < 1e-18L);
	/* Where a long double has 113 bits, musl's expl and logl are as exact as exp and log. */
	CHECK(fabsl(expl(logl(10.0L)) - 10.0L) < 1e-14L);
	CHECK((long long)third == 0 && (double)third == 1.0 / 3);
	CHECK((unsigned long long)18446744073709551615.0L == 18446744073709551615ull);
}

int main(void)
{
	output();
	input();
	long_doubles();
	return check_done();
}
