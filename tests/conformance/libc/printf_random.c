/* Random integer, string and character directives against a model that writes byte by byte; where
 * the output goes (a string of any size, a file with any buffer) must not matter. */
#include "check.h"

#include <limits.h>
#include <stdarg.h>

#define ROUNDS 6000
#define MOST   400

static uint64_t state = 88172645463325252;

static unsigned any(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 20) % below;
}

struct directive {
	int minus, plus, blank, hash, zero;
	int width, precision;
	char letter;
};

static size_t repeat(char *to, char c, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = c;
	return n > 0 ? (size_t)n : 0;
}

static size_t placed(char *to, const struct directive *d, const char *body, size_t length)
{
	int blanks = d->width - (int)length;
	size_t n = d->minus ? 0 : repeat(to, ' ', blanks);

	memcpy(to + n, body, length);
	n += length;
	return n + (d->minus ? repeat(to + n, ' ', blanks) : 0);
}

/* `value` as the conversion sees it: already cut to its type, negative only for d. */
static size_t model_integer(char *to, const struct directive *d, uint64_t value, int negative)
{
	char digits[70], body[MOST];
	int count = 0, zeros = 0;
	size_t n = 0;
	unsigned base = d->letter == 'o' ? 8 : d->letter == 'x' || d->letter == 'X' ? 16 : 10;
	const char *names = d->letter == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	int prefixed = d->hash && base == 16 && value;

	for (uint64_t rest = value; rest; rest /= base)
		digits[count++] = names[rest % base];
	if (d->precision < 0 ? !value : 0)
		digits[count++] = '0';
	if (d->precision > count)
		zeros = d->precision - count;
	if (d->hash && base == 8 && !zeros && !(count && digits[count - 1] == '0'))
		zeros = 1;
	if (negative)
		body[n++] = '-';
	else if (d->letter == 'd' && d->plus)
		body[n++] = '+';
	else if (d->letter == 'd' && d->blank)
		body[n++] = ' ';
	if (prefixed) {
		body[n++] = '0';
		body[n++] = d->letter;
	}
	if (d->zero && !d->minus && d->precision < 0 && d->width - (int)n - count > zeros)
		zeros = d->width - (int)n - count;
	n += repeat(body + n, '0', zeros);
	while (count)
		body[n++] = digits[--count];
	return placed(to, d, body, n);
}

static size_t write_format(char *to, const struct directive *d, const char *length)
{
	size_t n = 0;

	to[n++] = '%';
	if (d->zero)
		to[n++] = '0';
	if (d->plus)
		to[n++] = '+';
	if (d->minus)
		to[n++] = '-';
	if (d->blank)
		to[n++] = ' ';
	if (d->hash)
		to[n++] = '#';
	if (d->width)
		n += (size_t)sprintf(to + n, "%d", d->width);
	if (d->precision >= 0)
		n += (size_t)sprintf(to + n, ".%d", d->precision);
	strcpy(to + n, length);
	n += strlen(length);
	to[n++] = d->letter;
	to[n] = 0;
	return n;
}

static FILE *file;

static __attribute__((format(printf, 3, 0))) void all_ways(
    const char *want, size_t length, const char *format, va_list arguments)
{
	static char got[2 * MOST];
	size_t room = any(MOST);
	va_list again, more;

	va_copy(again, arguments);
	va_copy(more, arguments);
	memset(got, 'Z', sizeof got);
	CHECK_EQ(vsnprintf(got, sizeof got, format, arguments), length);
	if (memcmp(got, want, length + 1))
		check_string(__FILE__, __LINE__, format, got, want);
	memset(got, 'Z', sizeof got);
	CHECK_EQ(vsnprintf(got, room, format, again), length);
	if (room) {
		size_t kept = length < room ? length : room - 1;

		CHECK(!memcmp(got, want, kept) && !got[kept]);
	}
	CHECK(got[room > length ? length + 1 : room] == 'Z');
	rewind(file);
	setvbuf(file, NULL, _IOFBF, BUFSIZ);
	CHECK_EQ(vfprintf(file, format, more), length);
	NEED(fflush(file) == 0 && pread(fileno(file), got, length + 1, 0) >= (ssize_t)length);
	CHECK(!memcmp(got, want, length));
	va_end(more);
	va_end(again);
}

static void prints(const char *want, size_t length, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	all_ways(want, length, format, arguments);
	va_end(arguments);
}

static void directive(void)
{
	static const char letters[] = "diuxXosc";
	static const char *const lengths[] = { "", "hh", "h", "ll", "j" };
	struct directive d = { .letter = letters[any(sizeof letters - 1)], .precision = -1 };
	char format[64], want[MOST], text[40];
	char *f = format;
	size_t n = 0;

	for (unsigned lead = any(20); lead; lead--)
		*f++ = want[n++] = (char)('a' + any(26));
	if (any(8) == 0) {
		*f++ = '%';
		*f++ = '%';
		want[n++] = '%';
	}
	d.minus = any(4) == 0;
	d.width = any(2) ? (int)any(60) : 0;
	if (d.letter == 's') {
		size_t length = any(sizeof text);

		for (size_t i = 0; i < length; i++)
			text[i] = (char)(1 + any(255));
		text[length] = 0;
		if (any(2)) {
			d.precision = (int)any(40);
			if ((size_t)d.precision < length)
				length = (size_t)d.precision;
		}
		write_format(f, &d, "");
		n += placed(want + n, &d, text, length);
		want[n] = 0;
		prints(want, n, format, text);
		return;
	}
	if (d.letter == 'c') {
		*text = (char)any(256);
		write_format(f, &d, "");
		n += placed(want + n, &d, text, 1);
		want[n] = 0;
		prints(want, n, format, *text);
		return;
	}
	int is_signed = d.letter == 'd' || d.letter == 'i';
	const char *length = lengths[any(5)];
	uint64_t value = any(10) ? state >> any(64) : 0;
	int64_t seen;

	d.zero = any(3) == 0;
	d.plus = is_signed && any(4) == 0;
	d.blank = is_signed && any(4) == 0;
	d.hash = strchr("xXo", d.letter) && any(3) == 0;
	if (any(3) == 0)
		d.precision = (int)any(50);
	write_format(f, &d, length);
	if (any(2))
		value = -value;
	if (!strcmp(length, "hh"))
		seen = is_signed ? (signed char)value : (int64_t)(unsigned char)value;
	else if (!strcmp(length, "h"))
		seen = is_signed ? (short)value : (int64_t)(unsigned short)value;
	else if (!*length)
		seen = is_signed ? (int)value : (int64_t)(unsigned)value;
	else
		seen = (int64_t)value;
	d.letter = d.letter == 'i' ? 'd' : d.letter;
	if (is_signed && seen < 0)
		n += model_integer(want + n, &d, -(uint64_t)seen, 1);
	else
		n += model_integer(want + n, &d, (uint64_t)seen, 0);
	want[n] = 0;
	if (*length == 'l' || *length == 'j')
		prints(want, n, format, value);
	else
		prints(want, n, format, (int)value);
}

static void edges(void)
{
	char text[64];
	int early = -1, late = -1;
	signed char small[2] = { 1, 1 };

	/* Unbuffered and line-buffered streams, and one that cannot be written to. */
	NEED(file = freopen("printed", "w+", file));
	NEED(setvbuf(file, NULL, _IONBF, 0) == 0);
	CHECK_EQ(fprintf(file, "%d-%s\n%5d", 12, "two\nlines", 7), 18);
	NEED(pread(fileno(file), text, sizeof text, 0) == 18);
	CHECK(!memcmp(text, "12-two\nlines\n    7", 18));
	NEED(file = freopen("printed", "w+", file));
	NEED(setvbuf(file, NULL, _IOLBF, 16) == 0);
	CHECK_EQ(fprintf(file, "%d-%s\n%5d", 12, "two\nlines", 7), 18);
	NEED(fflush(file) == 0 && pread(fileno(file), text, sizeof text, 0) == 18);
	CHECK(!memcmp(text, "12-two\nlines\n    7", 18));
	NEED(file = freopen("printed", "r", file));
	CHECK_EQ(fprintf(file, "%d", 1), -1);
	CHECK(ferror(file));

	CHECK_EQ(snprintf(text, sizeof text, "ab%n%05d%n%hhn", &early, -12, &late, small), 7);
	CHECK_EQ(early, 2);
	CHECK_EQ(late, 7);
	CHECK(small[0] == 7 && small[1] == 1);
	CHECK_EQ(snprintf(text, sizeof text, "%s %.*f %g %Lg", "a", 2, 1.005, 1e100, (long double)0.5), 17);
	CHECK_STR(text, "a 1.00 1e+100 0.5");
	CHECK_EQ(snprintf(text, sizeof text, "%2$*1$d|", 4, 7), 5);
	CHECK_STR(text, "   7|");
	CHECK_EQ(snprintf(text, sizeof text, "%lc|%4ls|%-4.2ls|", L'x', L"yz", L"uvw"), 12);
	CHECK_STR(text, "x|  yz|uv  |");
	/* More than an int can count. */
	CHECK_ERRNO(snprintf(NULL, 0, "%*d%*d", INT_MAX, 1, 2, 1), EOVERFLOW);
	errno = ENOENT;
	CHECK_EQ(snprintf(text, sizeof text, "%m"), strlen("No such file or directory"));
	CHECK_EQ(errno, ENOENT);
}

int main(void)
{
	NEED(file = fopen("printed", "w+"));
	for (int i = 0; i < ROUNDS && !check_failures; i++)
		directive();
	edges();
	fclose(file);
	NEED(unlink("printed") == 0);
	return check_done();
}
