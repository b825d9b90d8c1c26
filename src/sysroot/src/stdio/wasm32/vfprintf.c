/* printf straight into the stream's buffer. Directives without numbered arguments are executed
 * here, with the generic file's tables and its floating point; a format with numbered ones is
 * passed to that file as a whole. */
#include "stdio_impl.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>
#include "print.h"

#define vfprintf vfprintf_numbered
static int vfprintf(FILE *restrict, const char *restrict, va_list);
#include "../vfprintf.c"
#undef vfprintf

/* The part of a directive between % and the letter; precision -1 means none. */
struct how {
	unsigned flags;
	int width, precision;
	int length;
};

static inline void emit(FILE *f, const char *s, size_t n)
{
	if (f->lbf < 0 && n <= (size_t)(f->wend - f->wpos)) {
		memcpy(f->wpos, s, n);
		f->wpos += n;
	} else {
		out(f, s, n);
	}
}

static void fill(FILE *f, char c, int n)
{
	char some[32];
	memset(some, c, sizeof some);
	for (; n > (int)sizeof some; n -= sizeof some) emit(f, some, sizeof some);
	if (n > 0) emit(f, some, n);
}

/* -1 if it does not fit an int. */
static inline int number(const char **s)
{
	unsigned long long n = 0;
	int fits = 1;
	for (; isdigit(**s); ++*s) {
		n = 10*n + (**s - '0');
		if (n > INT_MAX) n = fits = 0;
	}
	return fits ? (int)n : -1;
}

static char *decimal(uintmax_t x, char *end)
{
	unsigned low;
	for (; x > UINT_MAX; x /= 100) {
		low = x % 100;
		*--end = '0' + low % 10;
		*--end = '0' + low / 10;
	}
	low = x;
	for (; low >= 10; low /= 10) *--end = '0' + low % 10;
	*--end = '0' + low;
	return end;
}

/* Writes n bytes, padded to the width. Returns the number of bytes written. */
static int emit_padded(FILE *f, const struct how *how, const char *s, int n)
{
	int blanks = how->width > n ? how->width - n : 0;
	if (blanks && !(how->flags & LEFT_ADJ)) fill(f, ' ', blanks);
	emit(f, s, n);
	if (blanks && how->flags & LEFT_ADJ) fill(f, ' ', blanks);
	return n + blanks;
}

static int emit_string(FILE *f, const struct how *how, const char *s)
{
	if (!s) s = "(null)";
	size_t n = how->precision < 0 ? strlen(s) : strnlen(s, how->precision);
	if (n > INT_MAX) {
		errno = EOVERFLOW;
		return -1;
	}
	return emit_padded(f, how, s, n);
}

/* The precision counts bytes, and no character is cut. */
static int emit_wide(FILE *f, const struct how *how, const wchar_t *s)
{
	char c[MB_LEN_MAX];
	unsigned limit = how->precision < 0 ? INT_MAX : how->precision, total = 0;
	size_t count = 0;
	if (!s) s = L"(null)";
	for (;; count++) {
		int n = s[count] && total < limit ? wctomb(c, s[count]) : 0;
		if (n < 0) return -1;
		if (!n || n > limit - total) break;
		total += n;
	}
	if (total == limit && how->precision < 0) {
		errno = EOVERFLOW;
		return -1;
	}
	unsigned blanks = how->width > (int)total ? how->width - total : 0;
	if (!(how->flags & LEFT_ADJ)) fill(f, ' ', blanks);
	for (size_t i = 0; i < count; i++) emit(f, c, wctomb(c, s[i]));
	if (how->flags & LEFT_ADJ) fill(f, ' ', blanks);
	return total + blanks;
}

static int emit_integer(FILE *f, const struct how *how, char letter, uintmax_t x)
{
	char buf[24], *end = buf + sizeof buf, *digits = end;
	char sign[2];
	int before = 0;

	switch (letter) {
	case 'd': case 'i':
		if ((intmax_t)x < 0) {
			x = -x;
			sign[before++] = '-';
		} else if (how->flags & MARK_POS) {
			sign[before++] = '+';
		} else if (how->flags & PAD_POS) {
			sign[before++] = ' ';
		}
		/* fallthrough */
	case 'u':
		digits = decimal(x, end);
		break;
	case 'o':
		digits = fmt_o(x, end);
		break;
	default:
		digits = fmt_x(x, end, letter == 'X' ? 0 : 32);
		if (how->flags & ALT_FORM && x) {
			sign[before++] = '0';
			sign[before++] = letter == 'X' ? 'X' : 'x';
		}
	}
	if (!x) digits = end - (how->precision != 0);
	if (!x && how->precision) *digits = '0';

	int have = end - digits, least = how->precision, blanks = 0;
	if (letter == 'o' && how->flags & ALT_FORM && least <= have && (!have || *digits != '0')) least = have + 1;
	if (least < have) least = have;
	if (how->precision < 0 && how->flags & ZERO_PAD && !(how->flags & LEFT_ADJ) && how->width - before > least)
		least = how->width - before;
	if (least > INT_MAX - before) {
		errno = EOVERFLOW;
		return -1;
	}
	if (how->width > before + least) blanks = how->width - before - least;
	if (blanks && !(how->flags & LEFT_ADJ)) fill(f, ' ', blanks);
	if (before) emit(f, sign, before);
	if (least > have) fill(f, '0', least - have);
	emit(f, digits, have);
	if (blanks && how->flags & LEFT_ADJ) fill(f, ' ', blanks);
	return before + least + blanks;
}

/* A call of its own: it takes kilobytes of stack. */
static __attribute__((__noinline__)) int emit_float(FILE *f, const struct how *how, char letter, long double y)
{
	unsigned flags = how->flags & LEFT_ADJ ? how->flags & ~ZERO_PAD : how->flags;
	int n = fmt_fp(f, y, how->width, how->precision, flags, letter, how->length);
	if (n < 0) errno = EOVERFLOW;
	return n;
}

static void store_count(void *at, int length, int count)
{
	switch (length) {
	case BARE: *(int *)at = count; break;
	case LPRE: *(long *)at = count; break;
	case LLPRE: *(long long *)at = count; break;
	case HPRE: *(short *)at = count; break;
	case HHPRE: *(signed char *)at = count; break;
	case ZTPRE: *(size_t *)at = count; break;
	case JPRE: *(intmax_t *)at = count; break;
	}
}

int __print(FILE *f, const char *s, va_list ap)
{
	int count = 0, n;
	for (;;) {
		const char *text = s;
		s = (const char *)find_byte(s, splat('%'), 1, 0);
		size_t length = s - text;
		int literal = *s && s[1] == '%';
		length += literal;
		if (length > (size_t)(INT_MAX - count)) goto overflow;
		if (length) emit(f, text, length);
		count += length;
		if (!*s) return count;
		if (literal) {
			s += 2;
			continue;
		}

		if (f->flags & F_ERR) return -1;
		struct how how = { .precision = -1 };
		for (s++; (unsigned)*s - ' ' < 32 && FLAGMASK & 1U << (*s - ' '); s++) how.flags |= 1U << (*s - ' ');
		if (*s == '*') {
			s++;
			how.width = va_arg(ap, int);
			if (how.width == INT_MIN) goto overflow;
			if (how.width < 0) {
				how.flags |= LEFT_ADJ;
				how.width = -how.width;
			}
		} else if (isdigit(*s) && (how.width = number(&s)) < 0) {
			goto overflow;
		}
		if (how.width > INT_MAX - count) goto overflow;
		if (*s == '.' && s[1] == '*') {
			s += 2;
			how.precision = va_arg(ap, int);
			if (how.precision < 0) how.precision = -1;
		} else if (*s == '.') {
			s++;
			if ((how.precision = number(&s)) < 0) goto overflow;
		}

		unsigned type = BARE;
		do {
			if (OOB(*s)) goto invalid;
			how.length = type;
			type = states[type]S(*s++);
		} while (type - 1 < STOP);
		if (!type) goto invalid;

		char letter = s[-1];
		uintmax_t x = 0;
		long double y = 0;
		switch (type) {
		case PTR: case UIPTR: x = (uintptr_t)va_arg(ap, void *); break;
		case INT: case LONG: case PDIFF: x = va_arg(ap, int); break;
		case UINT: case ULONG: case SIZET: x = va_arg(ap, unsigned); break;
		case SHORT: x = (short)va_arg(ap, int); break;
		case USHORT: x = (unsigned short)va_arg(ap, int); break;
		case CHAR: x = (signed char)va_arg(ap, int); break;
		case UCHAR: x = (unsigned char)va_arg(ap, int); break;
		case DBL: y = va_arg(ap, double); break;
		case LDBL: y = va_arg(ap, long double); break;
		case NOARG: break;
		default: x = va_arg(ap, long long);
		}

		if (how.length == LPRE && (letter == 's' || letter == 'c')) letter -= 'a' - 'A';
		switch (letter) {
		case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
			n = emit_integer(f, &how, letter, x);
			break;
		case 's':
			n = emit_string(f, &how, (const char *)(uintptr_t)x);
			break;
		case 'c':
			n = emit_padded(f, &how, (char[]){ x }, 1);
			break;
		case 'p':
			how.flags |= ALT_FORM;
			if (how.precision < 2*(int)sizeof(void *)) how.precision = 2*sizeof(void *);
			n = emit_integer(f, &how, 'x', x);
			break;
		case 'C':
			how.precision = -1;
			n = x ? emit_wide(f, &how, (wchar_t[]){ x, 0 }) : emit_padded(f, &how, "", 1);
			break;
		case 'S':
			n = emit_wide(f, &how, (const wchar_t *)(uintptr_t)x);
			break;
		case 'm':
			n = emit_string(f, &how, strerror(errno));
			break;
		case 'n':
			store_count((void *)(uintptr_t)x, how.length, count);
			continue;
		default:
			n = emit_float(f, &how, letter, y);
		}
		if (n < 0) return -1;
		if (n > INT_MAX - count) goto overflow;
		count += n;
	}

invalid:
	errno = EINVAL;
	return -1;
overflow:
	errno = EOVERFLOW;
	return -1;
}

/* The temporary buffer of a stream without one. */
#define SHORT_BUFFER 80

int vfprintf(FILE *restrict f, const char *restrict format, va_list ap)
{
	unsigned char brief[SHORT_BUFFER], *own = f->buf;
	int count = -1;
	if (numbers_arguments(format)) return vfprintf_numbered(f, format, ap);

	FLOCK(f);
	unsigned failed_before = f->flags & F_ERR;
	int unbuffered = !f->buf_size;
	f->flags &= ~F_ERR;
	if (unbuffered) {
		f->buf = brief;
		f->buf_size = sizeof brief;
		f->wpos = f->wbase = f->wend = 0;
	}
	if (f->wend || !__towrite(f)) count = __print(f, format, ap);
	if (unbuffered) {
		f->write(f, 0, 0, MARK);
		if (!f->wpos) count = -1;
		f->buf = own;
		f->buf_size = 0;
		f->wpos = f->wbase = f->wend = 0;
	}
	if (f->flags & F_ERR) count = -1;
	f->flags |= failed_before;
	FUNLOCK(f);
	return count;
}
