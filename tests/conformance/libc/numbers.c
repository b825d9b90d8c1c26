/* strtol and its family, integer arithmetic of every width, div, qsort, bsearch, random numbers. */
#include "check.h"

#include <inttypes.h>
#include <limits.h>
#include <search.h>

static int up(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static void conversions(void)
{
	char *end;

	CHECK_EQ(strtol("  -42abc", &end, 10), -42);
	CHECK_STR(end, "abc");
	CHECK_EQ(strtol("0x1F", NULL, 0), 31);
	CHECK_EQ(strtol("0777", NULL, 0), 511);
	CHECK_EQ(strtol("zz", NULL, 36), 1295);
	CHECK_EQ(strtoll("9223372036854775807", NULL, 10), LLONG_MAX);
	errno = 0;
	CHECK_EQ(strtoll("9223372036854775808", NULL, 10), LLONG_MAX);
	CHECK_EQ(errno, ERANGE);
	errno = 0;
	CHECK(strtol("99999999999999999999", NULL, 10) == LONG_MAX && errno == ERANGE);
	CHECK_EQ(strtoull("-1", NULL, 10), ULLONG_MAX);
	CHECK_EQ(strtoimax("-7", &end, 10), -7);
	CHECK_EQ(strtol("", &end, 10), 0);
	CHECK_EQ(atoi("12x"), 12);
}

static void arithmetic(void)
{
	volatile int64_t a = INT64_MIN, b = -1, c = 1000000007;
	volatile uint64_t u = UINT64_MAX;
	volatile int32_t n = -7;
	volatile unsigned __int128 wide = (unsigned __int128)UINT64_MAX * UINT64_MAX;

	CHECK_EQ(a / 3, -3074457345618258602);
	CHECK_EQ(a % 10, -8);
	CHECK_EQ(c * c, 1000000014000000049);
	CHECK_EQ(u / 10, 1844674407370955161);
	CHECK_EQ(n / 2, -3);
	CHECK_EQ(n % 2, -1);
	CHECK_EQ(n >> 1, -4);
	CHECK_EQ(b >> 63, -1);
	CHECK_EQ(u << 63, 1ull << 63);
	CHECK((uint64_t)(wide >> 64) == UINT64_MAX - 1 && (uint64_t)wide == 1);
	CHECK((uint64_t)(wide / 1000000007) == (uint64_t)(wide / (unsigned)c));
	CHECK_EQ((int8_t)(uint8_t)0x80, -128);
	CHECK_EQ(__builtin_popcountll(u), 64);
	CHECK_EQ(__builtin_clz(1), 31);
	CHECK_EQ(__builtin_ctzll(1ull << 40), 40);
	CHECK_EQ(div(-7, 2).rem, -1);
	CHECK_EQ(lldiv(7000000000, 3).quot, 2333333333);
	CHECK_EQ(abs(-5), 5);
}

int main(void)
{
	int numbers[1000], key = 500, *found;
	unsigned seed = 1;
	long sum = 0;

	conversions();
	arithmetic();
	for (int i = 0; i < 1000; i++)
		numbers[i] = (i * 7919) % 1000;
	qsort(numbers, 1000, sizeof *numbers, up);
	for (int i = 0; i < 1000; i++)
		sum += numbers[i] == i;
	CHECK_EQ(sum, 1000);
	found = bsearch(&key, numbers, 1000, sizeof *numbers, up);
	NEED(found);
	CHECK_EQ(*found, 500);
	key = 1000;
	CHECK(bsearch(&key, numbers, 1000, sizeof *numbers, up) == NULL);
	srandom(7);
	sum = random();
	srandom(7);
	CHECK_EQ(random(), sum);
	CHECK(rand_r(&seed) >= 0 && rand() <= RAND_MAX);
	srand48(1);
	CHECK(drand48() >= 0 && drand48() < 1);
	return check_done();
}
