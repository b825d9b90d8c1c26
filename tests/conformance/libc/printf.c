/* Tests printf with integers, strings, widths and its other arguments. */
#include "check.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <wchar.h>

static void prints(const char *want, const char *format, ...)
{
	char text[256];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (strcmp(text, want))
		check_string(__FILE__, __LINE__, format, text, want);
	CHECK_EQ(length, strlen(want));
}

int main(void)
{
	char text[8], *made = NULL;
	int count = 0;

	prints("-1 4294967295 377 ff FF", "%d %u %o %x %X", -1, -1, 0xff, 0xff, 0xff);
	prints("-2147483648 2147483647", "%d %d", INT_MIN, INT_MAX);
	prints("-9223372036854775808 18446744073709551615", "%lld %llu", LLONG_MIN, ULLONG_MAX);
	prints("127 -1 65535 18446744073709551615", "%hhd %hhd %hu %" PRIu64, 127, 255, 65535, UINT64_MAX);
	prints("0x0000ff +5  5 00005 5    |", "%#08x %+d % d %05d %-5d|", 0xff, 5, 5, 5, 5);
	prints("  00042 |00042  |", "%7.5d |%-7.5d|", 42, 42);
	prints("0 0 0x1 01", "%#x %#o %#x %#o", 0, 0, 1, 1);
	prints("abc   abc abc   ab", "%s %5s %-5s %.2s", "abc", "abc", "abc", "abc");
	prints("c   c %", "%c %3c %%", 'c', 'c');
	prints("   ab|ab   |", "%*.*s|%*s|", 5, 2, "abc", -5, "ab");
	prints("b a", "%2$s %1$s", "a", "b");
	prints("3 4 5", "%zu %td %jd", (size_t)3, (ptrdiff_t)4, (intmax_t)5);
	prints("wide", "%ls", L"wide");
	CHECK_EQ(snprintf(text, sizeof text, "%s", "0123456789"), 10);
	CHECK_STR(text, "0123456");
	CHECK_EQ(snprintf(NULL, 0, "%d", 12345), 5);
	CHECK_EQ(sprintf(text, "abc%n", &count), 3);
	CHECK_EQ(count, 3);
	CHECK_EQ(asprintf(&made, "%s-%d", "made", 7), 6);
	CHECK_STR(made, "made-7");
	free(made);
	return check_done();
}
