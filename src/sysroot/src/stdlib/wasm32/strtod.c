/* A short path for decimal numbers of up to 19 digits, since the general one computes in a long
 * double that is software here. A number that it cannot round with certainty goes the general
 * way. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>

#define strtof general_strtof
#define strtod general_strtod
#define strtold general_strtold
static float strtof(const char *restrict, char **restrict);
static double strtod(const char *restrict, char **restrict);
static long double strtold(const char *restrict, char **restrict);
#include "../strtod.c"
#undef strtof
#undef strtod
#undef strtold

#define DIGITS 19

/* value * 10^exponent, and the end of its text. */
struct decimal {
	uint64_t value;
	int exponent, negative;
	const char *end;
};

/* Whether s is a number of the usual form. Anything else takes the general path. */
static int parse(const char *s, struct decimal *d)
{
	int digits = 0, any = 0;
	*d = (struct decimal){ 0 };
	while (isspace((unsigned char)*s)) s++;
	if (*s == '-' || *s == '+') d->negative = *s++ == '-';
	if (s[0] == '0' && (s[1] | 32) == 'x') return 0;
	for (int point = 0;; s++) {
		unsigned digit = *s - '0';
		if (*s == '.' && !point) {
			point = 1;
			continue;
		}
		if (digit > 9) break;
		any = 1;
		d->exponent -= point;
		if (digits || digit) {
			if (++digits > DIGITS) return 0;
			d->value = 10*d->value + digit;
		}
	}
	if (!any) return 0;
	if ((*s | 32) == 'e') {
		int negative = s[1] == '-', e = 0;
		s += 1 + (s[1] == '-' || s[1] == '+');
		if (!isdigit((unsigned char)*s)) return 0;
		for (; isdigit((unsigned char)*s); s++) {
			if (e > 1000) return 0;
			e = 10*e + (*s - '0');
		}
		d->exponent += negative ? -e : e;
	}
	d->end = s;
	return 1;
}

/* Powers of ten that are exact: up to 10^22 in double, up to 10^48 in long double. */
static const double ten[] = {
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
	1e21, 1e22,
};

static int small_power(const struct decimal *d)
{
	return d->exponent >= -22 && d->exponent <= 22;
}

/* Correctly rounded long double of d, if its power of ten is exact. */
static int to_quad(const struct decimal *d, long double *q)
{
	int e = abs(d->exponent);
	if (e > 44) return 0;
	long double power = e > 22 ? (long double)ten[22]*ten[e - 22] : ten[e];
	*q = d->exponent < 0 ? d->value/power : d->value*power;
	return 1;
}

double strtod(const char *restrict s, char **restrict p)
{
	struct decimal d;
	long double q;
	double r;
	if (!parse(s, &d)) return general_strtod(s, p);
	if (d.value <= 1ULL << 53 && small_power(&d)) {
		/* Both are exact, so the one operation rounds correctly. */
		r = d.exponent < 0 ? d.value/ten[-d.exponent] : d.value*ten[d.exponent];
	} else {
		/* Rounded twice: right unless the first rounding moved it across the middle of two doubles. */
		if (!to_quad(&d, &q)) return general_strtod(s, p);
		r = q - q*0x1p-110L;
		if (r != (double)(q + q*0x1p-110L)) return general_strtod(s, p);
	}
	if (p) *p = (char *)d.end;
	return d.negative ? -r : r;
}

float strtof(const char *restrict s, char **restrict p)
{
	struct decimal d;
	long double q;
	if (!parse(s, &d) || !to_quad(&d, &q)) return general_strtof(s, p);
	float r = q - q*0x1p-110L;
	if (r != (float)(q + q*0x1p-110L)) return general_strtof(s, p);
	if (p) *p = (char *)d.end;
	return d.negative ? -r : r;
}

long double strtold(const char *restrict s, char **restrict p)
{
	return general_strtold(s, p);
}
