/* GLOB_BRACE: {a,b} means either, and their matches are added one after the other. */
#define _BSD_SOURCE
#include <glob.h>
#define glob glob_plain
static int glob_plain(const char *restrict, int, int (*)(const char *, int), glob_t *restrict);
#include "../glob.c"
#undef glob

/* The end of the list that opens at `s`, or 0. */
static const char *closing(const char *s, int flags)
{
	int depth = 0;
	for (; *s; s++) {
		if (*s == '\\' && !(flags & GLOB_NOESCAPE) && s[1]) s++;
		else if (*s == '{') depth++;
		else if (*s == '}' && !--depth) return s;
	}
	return 0;
}

static const char *opening(const char *s, int flags)
{
	for (; *s; s++) {
		if (*s == '\\' && !(flags & GLOB_NOESCAPE) && s[1]) s++;
		/* {} is not a list, as in find -exec. */
		else if (*s == '{' && s[1] == '}') s++;
		else if (*s == '{') return closing(s, flags) ? s : 0;
	}
	return 0;
}

static int either(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *g, int *appends)
{
	const char *open = opening(pattern, flags), *from, *close;
	if (!open) {
		int r = glob_plain(pattern, (flags & ~GLOB_APPEND) | *appends, failed, g);
		if (!r) *appends = GLOB_APPEND;
		return r;
	}
	size_t before = open - pattern;
	int any = 0;
	close = closing(open, flags);
	for (from = open + 1; from <= close; ) {
		/* The next comma of this list, counted from a brace of its own. */
		const char *end = from;
		for (int depth = 0; end < close && (depth || *end != ','); end++) {
			if (*end == '\\' && !(flags & GLOB_NOESCAPE) && end + 1 < close) end++;
			else if (*end == '{') depth++;
			else if (*end == '}') depth--;
		}
		char *one = malloc(before + (end - from) + strlen(close + 1) + 1);
		if (!one) return GLOB_NOSPACE;
		memcpy(one, pattern, before);
		memcpy(one + before, from, end - from);
		strcpy(one + before + (end - from), close + 1);
		int r = either(one, flags, failed, g, appends);
		free(one);
		if (!r) any = 1;
		else if (r != GLOB_NOMATCH) return r;
		from = end + 1;
	}
	return any ? 0 : GLOB_NOMATCH;
}

int glob(const char *restrict pattern, int flags, int (*failed)(const char *, int), glob_t *restrict g)
{
	if (!(flags & GLOB_BRACE) || !opening(pattern, flags)) return glob_plain(pattern, flags & ~GLOB_BRACE, failed, g);
	int appends = flags & GLOB_APPEND;
	int r = either(pattern, flags & ~(GLOB_NOCHECK | GLOB_BRACE), failed, g, &appends);
	if (r == GLOB_NOMATCH && flags & GLOB_NOCHECK) return glob_plain(pattern, (flags & ~GLOB_BRACE) | GLOB_NOCHECK, failed, g);
	return r;
}
