/* Reading decimals, held against exact arithmetic and against printing: 200,000 random numbers and
 * the hard cases. */
#include "check.h"

#include <float.h>
#include <math.h>

static unsigned long long seed = 31337;

static unsigned long long next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int same(double a, double b)
{
	return !memcmp(&a, &b, sizeof a);
}

/* 17 digits name a double; fewer digits come back if it was read from them. */
static void round_trips(void)
{
	char text[64], again[64];

	for (int i = 0; i < 60000; i++) {
		unsigned long long bits = next();
		double d;
		float f;

		memcpy(&d, &bits, sizeof d);
		memcpy(&f, &bits, sizeof f);
		if (isfinite(d)) {
			snprintf(text, sizeof text, "%.17g", d);
			NEED(same(strtod(text, NULL), d));
			snprintf(text, sizeof text, "%a", d);
			NEED(same(strtod(text, NULL), d));
			snprintf(text, sizeof text, "%.14e", d);
			snprintf(again, sizeof again, "%.14e", strtod(text, NULL));
			NEED(fabs(d) < DBL_MIN || fabs(d) > 1e308 || !strcmp(text, again));
		}
		if (isfinite(f)) {
			snprintf(text, sizeof text, "%.9g", (double)f);
			NEED(strtof(text, NULL) == f);
		}
	}
}

/* Where the processor rounds right: integers of 64 bits, and exact numbers divided or multiplied by
 * exact powers of ten. */
static void exact(void)
{
	char text[64];

	for (int i = 0; i < 60000; i++) {
		unsigned long long integer = next() >> (next() % 40), small = integer & ((1ull << 53) - 1);
		int power = (int)(next() % 23);
		double ten = 1;

		snprintf(text, sizeof text, "%llu", integer);
		NEED(same(strtod(text, NULL), (double)integer));
		for (int n = 0; n < power; n++)
			ten *= 10;
		snprintf(text, sizeof text, "%llue-%d", small, power);
		NEED(same(strtod(text, NULL), (double)small / ten));
		snprintf(text, sizeof text, "%llue%d", small % 1000000, power);
		NEED(power > 16 || same(strtod(text, NULL), (double)(small % 1000000) * ten));
		/* The point may stand anywhere. */
		snprintf(text, sizeof text, "0.000%llue%d", small, power);
		NEED(small == 0 || strtod(text, NULL) > 0);
	}
}

static void hard_cases(void)
{
	static const struct {
		const char *text;
		double value;
	} cases[] = {
		{ "2.2250738585072011e-308", 0x0.fffffffffffffp-1022 },
		{ "2.2250738585072012e-308", 0x1p-1022 },
		{ "2.4703282292062327e-324", 0 },
		{ "2.4703282292062328e-324", 0x1p-1074 },
		{ "4.9406564584124654e-324", 0x1p-1074 },
		{ "1.7976931348623157e308", DBL_MAX },
		{ "1.7976931348623158e308", DBL_MAX },
		{ "9007199254740993", 9007199254740992.0 },
		{ "9007199254740995", 9007199254740996.0 },
		{ "1.00000000000000011102230246251565404236316680908203125", 1 },
		{ "1.00000000000000011102230246251565404236316680908203124", 1 },
		{ "1.00000000000000011102230246251565404236316680908203126", 0x1.0000000000001p0 },
		{ "8.5e0", 8.5 },
		{ "123456789012345678901234567890", 0x1.8ee90ff6c373ep+96 },
		{ "6.9294956446009195e15", 6929495644600919.5 },
		{ "7.2057594037927933e16", 72057594037927936.0 },
		{ "1e23", 0x1.52d02c7e14af6p+76 },
		{ "5e-20", 0x1.d83c94fb6d2acp-65 },
		{ "0.000000000000000000000000000000000000000000000000000000001e57", 1 },
		{ "100000000000000000000000000000000000000000000000000e-50", 1 },
		{ "00000000000000000000000000000000000000000000000000001.5", 1.5 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!same(strtod(cases[i].text, NULL), cases[i].value)) {
			printf("%s: got %a, not %a\n", cases[i].text, strtod(cases[i].text, NULL), cases[i].value);
			CHECK(!"the nearest double");
		}
}

static void syntax(void)
{
	static const struct {
		const char *text;
		size_t used;
	} cases[] = {
		{ "1", 1 },
		{ "1.", 2 },
		{ ".5", 2 },
		{ ".", 0 },
		{ "1e", 1 },
		{ "1e+", 1 },
		{ "1e5x", 3 },
		{ "+.5e-1", 6 },
		{ "--1", 0 },
		{ "0x", 1 },
		{ "0x1p", 3 },
		{ "0x.8", 4 },
		{ "0xg", 1 },
		{ "inf", 3 },
		{ "infinit", 3 },
		{ "INFINITY", 8 },
		{ "nan", 3 },
		{ "nan(12)", 7 },
		{ "nan(", 3 },
		{ " \t\n7", 4 },
		{ "1,5", 1 },
		{ "", 0 },
		{ "e5", 0 },
	};
	char *end;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		strtod(cases[i].text, &end);
		if ((size_t)(end - cases[i].text) != cases[i].used) {
			printf(
			    "\"%s\": used %d, not %d\n", cases[i].text, (int)(end - cases[i].text), (int)cases[i].used);
			CHECK(!"as much as is a number");
		}
	}
	CHECK(signbit(strtod("-0", NULL)) && signbit(strtod("-1e-400", NULL)));
}

int main(void)
{
	round_trips();
	exact();
	hard_cases();
	syntax();
	return check_done();
}
