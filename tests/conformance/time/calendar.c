/* gmtime, mktime, strftime, strptime, TZ: no system call, but every program. */
#include "check.h"

#include <time.h>

int main(void)
{
	struct tm tm = { 0 };
	char text[64];
	time_t t = 1700000000;

	NEED(gmtime_r(&t, &tm));
	CHECK_EQ(tm.tm_year, 123);
	CHECK_EQ(tm.tm_mon, 10);
	CHECK_EQ(tm.tm_mday, 14);
	CHECK_EQ(tm.tm_hour, 22);
	CHECK_EQ(tm.tm_yday, 317);
	CHECK(strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %j %a %b %s", &tm) > 0);
	CHECK_EQ(strncmp(text, "2023-11-14 22:13:20 318 Tue Nov", 31), 0);
	CHECK_EQ(timegm(&tm), 1700000000);
	/* Beyond 2038 and before 1970. */
	t = 5000000000;
	NEED(gmtime_r(&t, &tm));
	CHECK_EQ(tm.tm_year, 228);
	CHECK_EQ(timegm(&tm), 5000000000);
	t = -86400;
	NEED(gmtime_r(&t, &tm));
	CHECK_EQ(tm.tm_year, 69);
	CHECK_EQ(tm.tm_mday, 31);

	setenv("TZ", "EST5EDT,M3.2.0,M11.1.0", 1);
	tzset();
	t = 1690000000;
	NEED(localtime_r(&t, &tm));
	CHECK_EQ(tm.tm_isdst, 1);
	CHECK_EQ(tm.tm_hour, 0);
	CHECK_EQ(tm.tm_gmtoff, -4 * 3600);
	tm.tm_isdst = -1;
	CHECK_EQ(mktime(&tm), 1690000000);
	/* Fields out of range are carried over. */
	tm = (struct tm){ .tm_year = 124, .tm_mon = 13, .tm_mday = 32, .tm_hour = 25, .tm_isdst = -1 };
	CHECK(mktime(&tm) != -1);
	CHECK_EQ(tm.tm_year, 125);
	CHECK_EQ(tm.tm_mon, 2);
	CHECK_EQ(tm.tm_mday, 5);
	CHECK_EQ(tm.tm_hour, 1);
	memset(&tm, 0, sizeof tm);
	CHECK(strptime("2024-02-29T12:34:56", "%Y-%m-%dT%H:%M:%S", &tm) != NULL);
	CHECK_EQ(tm.tm_mday, 29);
	CHECK_EQ(tm.tm_sec, 56);
	CHECK_STR(
	    asctime_r(&(struct tm){ .tm_mday = 1, .tm_year = 70, .tm_wday = 4 }, text), "Thu Jan  1 00:00:00 1970\n");
	CHECK_EQ((long long)difftime(10, 3), 7);
	return check_done();
}
