/* Wide characters, multibyte conversion in C.UTF-8, iconv, locale. */
#include "check.h"

#include <iconv.h>
#include <langinfo.h>
#include <locale.h>
#include <wchar.h>
#include <wctype.h>

int main(void)
{
	wchar_t wide[16];
	char narrow[32], *in, *out;
	size_t left, room;
	mbstate_t state = { 0 };
	iconv_t cd;

	CHECK_STR(setlocale(LC_ALL, NULL), "C");
	NEED(setlocale(LC_ALL, "C.UTF-8"));
	CHECK_STR(nl_langinfo(CODESET), "UTF-8");
	CHECK_STR(localeconv()->decimal_point, ".");
	CHECK_EQ(mbstowcs(wide, "h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 16), 4);
	CHECK_EQ(wide[1], 0xe9);
	CHECK_EQ(wide[2], 0x20ac);
	CHECK_EQ(wide[3], 0x1f600);
	CHECK_EQ(wcstombs(narrow, wide, sizeof narrow), 10);
	CHECK_STR(narrow, "h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	CHECK_EQ(mbrtowc(wide, "\xe2\x82", 2, &state), (size_t)-2);
	CHECK_EQ(mbrtowc(wide, "\xac", 1, &state), 1);
	CHECK_EQ(wide[0], 0x20ac);
	memset(&state, 0, sizeof state);
	errno = 0;
	CHECK(mbrtowc(wide, "\xff", 1, &state) == (size_t)-1 && errno == EILSEQ);
	CHECK_EQ(mblen("\xc3\xa9", 2), 2);

	CHECK_EQ(wcslen(L"four"), 4);
	CHECK_EQ(wcscmp(L"a", L"b") < 0, 1);
	CHECK_EQ(wcstol(L"0x20", NULL, 0), 32);
	CHECK_EQ(swprintf(wide, 16, L"%ls-%d-%s", L"w", 7, "n"), 5);
	CHECK_EQ(wcscmp(wide, L"w-7-n"), 0);
	CHECK_EQ(towupper(0xe9), 0xc9);
	CHECK(iswalpha(0x3b1) && !iswdigit(0x3b1) && iswspace(0x2003));
	CHECK_EQ(wcwidth(L'a'), 1);
	CHECK_EQ(wcwidth(0x4e2d), 2);

	NEED((cd = iconv_open("UTF-16BE", "UTF-8")) != (iconv_t)-1);
	in = (char[]){ "a\xe2\x82\xac" }, left = 4, out = narrow, room = sizeof narrow;
	CHECK_EQ(iconv(cd, &in, &left, &out, &room), 0);
	CHECK_EQ(out - narrow, 4);
	CHECK_EQ(memcmp(narrow, "\0a\x20\xac", 4), 0);
	iconv_close(cd);
	NEED((cd = iconv_open("UTF-8", "ISO-8859-1")) != (iconv_t)-1);
	in = (char[]){ "\xe9" }, left = 1, out = narrow, room = sizeof narrow;
	CHECK_EQ(iconv(cd, &in, &left, &out, &room), 0);
	CHECK_EQ(memcmp(narrow, "\xc3\xa9", 2), 0);
	iconv_close(cd);
	CHECK(iconv_open("NO-SUCH", "UTF-8") == (iconv_t)-1);
	return check_done();
}
