/* String functions against plain loops: random contents of few letters, zeros inside and high
 * bytes, at random places of two pages between pages that are not there, mostly at their ends. */
#include "check.h"

#include <strings.h>
#include <sys/mman.h>

#define PAGE   4096
#define SPACE  (2 * PAGE)
#define ROUNDS 150000

static unsigned char *area[2];
static uint64_t state = 0x853c49e6748fea9b;

static size_t any(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state >> 20) % below;
}

static size_t some_length(void)
{
	switch (any(4)) {
	case 0:
		return any(4);
	case 1:
		return any(20);
	case 2:
		return any(150);
	default:
		return any(700);
	}
}

static unsigned char letter(int kind)
{
	static const unsigned char few[] = { 'a', 'b', 'A', 0x80, 0xff, 'z' };

	return kind == 0 ? 'a'
	    : kind == 1  ? few[any(2)]
	    : kind == 2  ? few[any(sizeof few)]
			 : (unsigned char)(1 + any(255));
}

/* Room for n bytes: at the end or the start of the two pages, around the border between them, or
 * anywhere. */
static unsigned char *place(int which, size_t n)
{
	size_t most = SPACE - n, at;

	switch (any(4)) {
	case 0:
		at = most;
		break;
	case 1:
		at = any(40);
		break;
	case 2:
		at = PAGE - any(n + 30);
		break;
	default:
		at = any(most + 1);
	}
	return area[which] + (at < most ? at : most);
}

/* n bytes without 0, and then one. */
static char *string(int which, size_t n, int kind)
{
	unsigned char *s = place(which, n + 1);

	for (size_t i = 0; i < n; i++)
		s[i] = letter(kind);
	s[n] = 0;
	return (char *)s;
}

static int sign(int x)
{
	return (x > 0) - (x < 0);
}

static int lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* Which comparison of the first n bytes: whether it ends at 0, whether it knows letters. */
static int compare(const void *a, const void *b, size_t n, int strings, int folded)
{
	const unsigned char *l = a, *r = b;

	for (size_t i = 0; i < n; i++) {
		int x = folded ? lower(l[i]) : l[i], y = folded ? lower(r[i]) : r[i];

		if (x != y)
			return x < y ? -1 : 1;
		if (strings && !x)
			return 0;
	}
	return 0;
}

static const void *first(const void *s, int c, size_t n)
{
	for (const unsigned char *p = s; n; p++, n--)
		if (*p == (unsigned char)c)
			return p;
	return NULL;
}

static const void *last(const void *s, int c, size_t n)
{
	for (const unsigned char *p = s; n; n--)
		if (p[n - 1] == (unsigned char)c)
			return p + n - 1;
	return NULL;
}

static const void *within(const void *hay, size_t h, const void *needle, size_t n, int folded)
{
	for (size_t i = 0; i + n <= h; i++)
		if (!compare((const char *)hay + i, needle, n, 0, folded))
			return (const char *)hay + i;
	return NULL;
}

static size_t span(const char *s, const char *set, int inside)
{
	size_t n = 0;

	while (s[n] && !!first(set, s[n], strlen(set)) == inside)
		n++;
	return n;
}

static void searches(void)
{
	size_t n = some_length(), limit = any(4) ? any(n + 20) : (size_t)-1;
	int kind = (int)any(4), c = any(4) ? letter(kind) : 0;
	char *s = string(0, n, kind);

	CHECK_EQ(strlen(s), n);
	CHECK_EQ(strnlen(s, limit), limit < n ? limit : n);
	CHECK(strchr(s, c) == first(s, c, n + 1));
	CHECK(strchr(s, c | ~255) == first(s, c, n + 1));
	CHECK(strrchr(s, c) == last(s, c, n + 1));
	CHECK(strchrnul(s, c) == (first(s, c, n) ? first(s, c, n) : s + n));
	CHECK(memrchr(s, c, n) == last(s, c, n));
	CHECK(memchr(s, c, n) == first(s, c, n));
	/* It stops where it finds the byte, however many there are said to be. */
	CHECK(memchr(s, 0, (size_t)-1) == s + n);
	if (any(3) == 0) {
		char set[8];
		size_t letters = any(6);

		for (size_t i = 0; i < letters; i++)
			set[i] = (char)letter(kind);
		set[letters] = 0;
		CHECK_EQ(strspn(s, set), span(s, set, 1));
		CHECK_EQ(strcspn(s, set), span(s, set, 0));
	}
}

static void bytes(void)
{
	size_t n = some_length();
	int c = (int)any(256);
	unsigned char *s = place(0, n);

	for (size_t i = 0; i < n; i++)
		s[i] = (unsigned char)any(3);
	CHECK(memchr(s, c & 3, n) == first(s, c & 3, n));
	CHECK(memrchr(s, c & 3, n) == last(s, c & 3, n));
	memset(s, c, n);
	CHECK(!first(s, c + 1, n) && (!n || last(s, c, n) == s + n - 1));
}

static void comparisons(void)
{
	size_t n = some_length(), limit = any(n + 20);
	int kind = (int)any(4);
	char *a = string(0, n, kind), *b = string(1, n, 0);

	memcpy(b, a, n);
	if (any(4) && n)
		b[any(n)] = (char)(any(3) ? letter(2) : any(2) ? b[0] ^ 32 : 0);
	CHECK_EQ(sign(memcmp(a, b, n + 1)), compare(a, b, n + 1, 0, 0));
	CHECK_EQ(sign(strcmp(a, b)), compare(a, b, n + 1, 1, 0));
	CHECK_EQ(sign(strncmp(a, b, limit)), compare(a, b, limit, 1, 0));
	CHECK_EQ(sign(strcasecmp(a, b)), compare(a, b, n + 1, 1, 1));
	CHECK_EQ(sign(strncasecmp(a, b, limit)), compare(a, b, limit, 1, 1));
}

static void needles(void)
{
	size_t n = some_length(), l = any(3) ? any(6) : any(60);
	int kind = (int)any(4);
	char *hay = string(0, n, kind), *needle = string(1, l, any(2) ? kind : 1);

	if (any(2) && n >= l)
		memcpy(needle, hay + any(n - l + 1), l);
	CHECK(strstr(hay, needle) == within(hay, n, needle, l, 0));
	CHECK(memmem(hay, n + 1, needle, l) == within(hay, n + 1, needle, l, 0));
	CHECK(strcasestr(hay, needle) == within(hay, n, needle, l, 1));
}

static void copies(void)
{
	static unsigned char before[SPACE];
	size_t n = some_length(), limit = any(n + 40), at;
	char *s = string(0, n, 3), *to;

	memset(area[1], 1, SPACE);
	to = (char *)place(1, n + 1);
	at = (size_t)((unsigned char *)to - area[1]);
	switch (any(4)) {
	case 0:
		CHECK(strcpy(to, s) == to);
		break;
	case 1:
		CHECK(stpcpy(to, s) == to + n);
		break;
	case 2:
		*to = 0;
		CHECK(strcat(to, s) == to);
		break;
	default:
		CHECK(memcpy(to, s, n + 1) == to);
	}
	CHECK(!compare(to, s, n + 1, 0, 0) && (!at || to[-1] == 1) && (at + n + 1 == SPACE || to[n + 1] == 1));

	memset(area[1], 1, SPACE);
	to = (char *)place(1, limit);
	at = (size_t)((unsigned char *)to - area[1]);
	CHECK(stpncpy(to, s, limit) == to + (limit < n ? limit : n));
	CHECK(!compare(to, s, limit < n ? limit : n, 0, 0));
	for (size_t i = n; i < limit; i++)
		CHECK(!to[i]);
	CHECK((!at || to[-1] == 1) && (at + limit == SPACE || to[limit] == 1));

	/* Overlapping, near and far. */
	for (size_t i = 0; i < SPACE; i++)
		before[i] = area[1][i] = (unsigned char)(i * 7 + i / 256);
	size_t from = any(SPACE - n), into = any(2) ? any(SPACE - n) : from + any(40) - 20;

	if (into > SPACE - n)
		into = SPACE - n;
	CHECK(memmove(area[1] + into, area[1] + from, n) == area[1] + into);
	CHECK(!compare(area[1] + into, before + from, n, 0, 0));
	CHECK(!compare(area[1], before, into, 0, 0) &&
	    !compare(area[1] + into + n, before + into + n, SPACE - into - n, 0, 0));
}

int main(void)
{
	for (int i = 0; i < 2; i++) {
		area[i] = mmap(NULL, SPACE + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NEED(area[i] != MAP_FAILED);
		area[i] += PAGE;
		NEED(mprotect(area[i], SPACE, PROT_READ | PROT_WRITE) == 0);
	}
	for (int i = 0; i < ROUNDS && !check_failures; i++) {
		switch (any(8)) {
		case 0:
			bytes();
			break;
		case 1:
		case 2:
			comparisons();
			break;
		case 3:
		case 4:
			needles();
			break;
		case 5:
			if (any(8) == 0)
				copies();
			break;
		default:
			searches();
		}
	}
	return check_done();
}
