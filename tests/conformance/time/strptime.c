/* strptime beyond POSIX of 2008, as glibc and POSIX of 2024 have it: zones, seconds, days of the
 * week by number. */
#define _GNU_SOURCE
#include "check.h"

#include <time.h>

/* The rest of `text` after `format`, or NULL. */
static const char *reads(const char *text, const char *format, struct tm *tm)
{
	memset(tm, 0, sizeof *tm);
	return strptime(text, format, tm);
}

int main(void)
{
	struct tm tm;

	CHECK_STR(reads("2024-02-29 rest", "%F", &tm), " rest");
	CHECK_EQ(tm.tm_year, 124);
	CHECK_EQ(tm.tm_mon, 1);
	CHECK_EQ(tm.tm_mday, 29);

	CHECK_STR(reads("12:34+0130.", "%H:%M%z", &tm), ".");
	CHECK_EQ(tm.tm_gmtoff, 5400);
	CHECK_STR(reads(" -08:00", "%z", &tm), "");
	CHECK_EQ(tm.tm_gmtoff, -8 * 3600);
	CHECK_STR(reads("+02", "%z", &tm), "");
	CHECK_EQ(tm.tm_gmtoff, 7200);
	CHECK_STR(reads("Zulu", "%z", &tm), "ulu");
	CHECK_EQ(tm.tm_gmtoff, 0);
	CHECK(reads("CET", "%z", &tm) == NULL);
	CHECK(reads("+2", "%z", &tm) == NULL);
	CHECK(reads("+0160", "%z", &tm) == NULL);
	CHECK(reads("", "%z", &tm) == NULL);
	CHECK_STR(reads("10 CET 2024", "%H %Z %Y", &tm), "");
	CHECK_EQ(tm.tm_year, 124);

	NEED(setenv("TZ", "UTC0", 1) == 0);
	tzset();
	CHECK_STR(reads("1709210096", "%s", &tm), "");
	CHECK_EQ(tm.tm_year, 124);
	CHECK_EQ(tm.tm_yday, 59);
	CHECK_EQ(tm.tm_sec, 56);
	CHECK(reads("x", "%s", &tm) == NULL);

	CHECK_STR(reads("7", "%u", &tm), "");
	CHECK_EQ(tm.tm_wday, 0);
	CHECK_STR(reads("3", "%u", &tm), "");
	CHECK_EQ(tm.tm_wday, 3);
	CHECK(reads("0", "%u", &tm) == NULL);
	CHECK_STR(reads(" 7: 9", "%k:%l", &tm), "");
	CHECK_EQ(tm.tm_hour, 9);
	return check_done();
}
