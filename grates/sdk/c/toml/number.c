/* Integers and floats of a TOML file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "parser.h"

size_t lind_toml_word(const struct parser *p)
{
	size_t n = 0;

	while (p->at + n < p->end && !strchr(" \t\r\n,]}#", p->at[n]) && p->at[n])
		n++;
	return n;
}

/* Copies digits without the underscores between them. The length; 0 if something else is among
 * them. */
static size_t digits(const char *from, size_t n, int base, char *to)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (from[i] == '_' && i && i + 1 < n && digit(from[i - 1]) < base && digit(from[i + 1]) < base)
			continue;
		if (digit((unsigned char)from[i]) >= base)
			return 0;
		to[used++] = from[i];
	}
	return used;
}

/* digits [. digits] [e [sign] digits], already without sign. */
static bool float_number(const char *w, size_t n, char *to)
{
	size_t whole = 0, used, part = 0;

	while (whole < n && w[whole] != '.' && w[whole] != 'e' && w[whole] != 'E')
		whole++;
	if (whole == n || !(used = digits(w, whole, 10, to)) || (used > 1 && to[0] == '0'))
		return false;
	if (w[whole] == '.') {
		to[used++] = '.';
		whole++;
		while (whole + part < n && w[whole + part] != 'e' && w[whole + part] != 'E')
			part++;
		if (!(n - whole) || !(part = digits(w + whole, part, 10, to + used)))
			return false;
		used += part;
		while (whole < n && w[whole] != 'e' && w[whole] != 'E')
			whole++;
	}
	if (whole < n) {
		to[used++] = 'e';
		whole++;
		if (whole < n && (w[whole] == '+' || w[whole] == '-'))
			to[used++] = w[whole++];
		if (!(part = digits(w + whole, n - whole, 10, to + used)))
			return false;
		used += part;
	}
	to[used] = 0;
	return true;
}

/* The integer of these characters, behind a sign. False if they are none. */
static bool integer(const char *w, size_t n, int base, char *to)
{
	size_t prefix = base == 10 ? 0 : 2, used = digits(w + prefix, n - prefix, base, to);

	to[used] = 0;
	return used && (base != 10 || used == 1 || to[0] != '0');
}

struct lind_toml *lind_toml_read_number(struct parser *p)
{
	const char *begin = p->at, *w = p->at;
	size_t n = lind_toml_word(p);
	bool sign = n && (*w == '-' || *w == '+'), negative = sign && *w == '-';
	struct lind_toml *v = lind_toml_new(p, begin, LIND_TOML_INTEGER);
	uint64_t magnitude;
	char text[128];
	int base = 10;

	if (!v)
		return NULL;
	p->at += n;
	w += sign;
	n -= sign;
	if (n > 2 && w[0] == '0' && !sign)
		base = w[1] == 'x' ? 16 : w[1] == 'o' ? 8 : w[1] == 'b' ? 2 : 10;
	if (n < sizeof text && integer(w, n, base, text)) {
		errno = 0;
		magnitude = strtoull(text, NULL, base);
		if (errno || (base == 10 && magnitude > (uint64_t)INT64_MAX + negative))
			return lind_toml_fail(p, begin, "more than 64 bits");
		v->integer = (int64_t)(negative ? -magnitude : magnitude);
		v->wide = !negative && magnitude > INT64_MAX;
		return v;
	}
	if (n < sizeof text && base == 10 && float_number(w, n, text)) {
		v->type = LIND_TOML_FLOAT;
		v->number = strtod(text, NULL);
		v->number = negative ? -v->number : v->number;
		return v;
	}
	return lind_toml_fail(
	    p, begin, "expected a value, not '%.*s'", (int)(p->at - begin < 40 ? p->at - begin : 40), begin);
}
