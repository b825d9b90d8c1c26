/* String functions against plain loops, at every alignment and length of a small range, and at the
 * end of a mapping. */
#include "check.h"

#include <strings.h>
#include <sys/mman.h>

#define PAGE 4096

static char *edge;

static size_t plain_length(const char *s)
{
	const char *p = s;

	while (*p)
		p++;
	return (size_t)(p - s);
}

static int sign(int x)
{
	return (x > 0) - (x < 0);
}

/* Strings that end right before a page that is not there: reading further faults. */
static void at_the_edge(void)
{
	for (size_t length = 0; length < 70; length++) {
		char *s = edge - length - 1;

		memset(s, 'a', length);
		s[length] = 0;
		NEED(strlen(s) == plain_length(s));
		NEED(strnlen(s, length / 2) == length / 2);
		NEED(strchr(s, 'z') == NULL && strchr(s, 0) == s + length && strchrnul(s, 'z') == s + length);
		NEED(memchr(s, 'z', length + 1) == NULL && strrchr(s, 0) == s + length);
		NEED(strcmp(s, s) == 0 && strncmp(s, s, 100) == 0 && strcasecmp(s, s) == 0);
		NEED(strstr(s, "b") == NULL && strspn(s, "a") == length && strcspn(s, "b") == length);
		if (length) {
			s[length - 1] = 'b';
			NEED(strchr(s, 'b') == s + length - 1 && memrchr(s, 'b', length) == s + length - 1);
			NEED(strstr(s, "b") == s + length - 1 && strcspn(s, "b") == length - 1);
		}
	}
}

static void copies(void)
{
	char from[300], to[300], want[300];

	for (int i = 0; i < 300; i++)
		from[i] = (char)(i * 7);
	for (int offset = 0; offset < 9; offset++)
		for (size_t n = 0; n < 280; n += n < 40 ? 1 : 13) {
			memset(to, 1, sizeof to);
			memset(want, 1, sizeof want);
			for (size_t i = 0; i < n; i++)
				want[i + 3] = from[i + (size_t)offset];
			NEED(memcpy(to + 3, from + offset, n) == to + 3);
			NEED(memcmp(to, want, sizeof to) == 0);
			/* Overlapping, both ways. */
			memcpy(to, from, sizeof to);
			memmove(to + offset, to, n);
			NEED(memcmp(to + offset, from, n) == 0);
			memcpy(to, from, sizeof to);
			memmove(to, to + offset, n);
			NEED(memcmp(to, from + offset, n) == 0);
		}
}

static void comparisons(void)
{
	CHECK_EQ(sign(strcmp("abc", "abd")), -1);
	CHECK_EQ(sign(strcmp("abc", "ab")), 1);
	CHECK_EQ(sign(strcmp("\xff", "a")), 1);
	CHECK_EQ(sign(memcmp("a\0b", "a\0c", 3)), -1);
	CHECK_EQ(strncmp("abcX", "abcY", 3), 0);
	CHECK_EQ(strcasecmp("HeLLo", "hEllO"), 0);
	CHECK_EQ(sign(strverscmp("file10", "file9")), 1);
}

static void pieces(void)
{
	char text[] = "a,b;;c", copy[16], *rest, *found, *list = text;

	CHECK_STR(strtok_r(text, ",;", &rest), "a");
	CHECK_STR(strtok_r(NULL, ",;", &rest), "b");
	CHECK_STR(strtok_r(NULL, ",;", &rest), "c");
	CHECK(strtok_r(NULL, ",;", &rest) == NULL);
	strcpy(text, "x::y");
	list = text;
	CHECK_STR(strsep(&list, ":"), "x");
	CHECK_STR(strsep(&list, ":"), "");
	CHECK_STR(strsep(&list, ":"), "y");
	CHECK(strsep(&list, ":") == NULL);
	CHECK_STR(strstr("a needle in haystack", "needle in"), "needle in haystack");
	CHECK(strstr("aaaaaaaaab", "aaab") != NULL && strstr("short", "much longer") == NULL);
	CHECK(memmem("\0\1\2\3", 4, "\2\3", 2) != NULL);
	CHECK_STR(stpcpy(copy, "ab") - 2, "ab");
	strncpy(copy, "abcdefgh", 4);
	CHECK_EQ(memcmp(copy, "abcd", 4), 0);
	NEED((found = strdup("dup")));
	CHECK_STR(found, "dup");
	free(found);
	CHECK_STR(strpbrk("hello", "xl"), "llo");
	CHECK_EQ(ffs(0x80), 8);
	CHECK_STR(strerror(ENOENT), "No such file or directory");
}

int main(void)
{
	char *area = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(area != MAP_FAILED && munmap(area + PAGE, PAGE) == 0);
	edge = area + PAGE;
	at_the_edge();
	copies();
	comparisons();
	pieces();
	return check_done();
}
