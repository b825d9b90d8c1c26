/*
 * Changes of files that are not text, as git has them in a patch: the whole new file, and the whole
 * old one for who takes the patch back. Each is a stream of zlib, here without compression, in base
 * 85. git applies one only to the file whose object it names, so both objects are named in full.
 */
#include "patch.h"
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>

#define LINE  52   /* bytes to a line, whose first letter says how many */
#define PIECE 65535  /* bytes of a block of deflate that is not compressed */

/* SHA-1, by which git names objects. */
struct sha {
	uint32_t h[5];
	uint8_t block[64];
	uint64_t size;
};

static uint32_t rotated(uint32_t x, unsigned by)
{
	return x << by | x >> (32 - by);
}

static void sha_block(struct sha *s)
{
	uint32_t w[80], a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
		    (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
	for (int i = 16; i < 80; i++)
		w[i] = rotated(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20 ? ((b & c) | (~b & d)) + 0x5a827999u
		    : i < 40        ? (b ^ c ^ d) + 0x6ed9eba1u
		    : i < 60        ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
				    : (b ^ c ^ d) + 0xca62c1d6u;
		uint32_t next = rotated(a, 5) + f + e + w[i];

		e = d;
		d = c;
		c = rotated(b, 30);
		b = a;
		a = next;
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
}

static void sha_add(struct sha *s, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	while (size--) {
		s->block[s->size++ % 64] = *from++;
		if (!(s->size % 64))
			sha_block(s);
	}
}

/* Prints the name of the object that a file with these bytes is; that of none is zeros. */
static void print_object(const uint8_t *bytes, size_t size, bool is_there)
{
	struct sha s = { .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
	char head[32];
	uint8_t bits[8];

	if (!is_there) {
		printf("%040d", 0);
		return;
	}
	sha_add(&s, head, (size_t)snprintf(head, sizeof head, "blob %zu", size) + 1);
	sha_add(&s, bytes, size);
	for (int i = 0; i < 8; i++)
		bits[i] = (uint8_t)(s.size * 8 >> (56 - 8 * i));
	sha_add(&s, "\x80", 1);
	while (s.size % 64 != 56)
		sha_add(&s, "", 1);
	sha_add(&s, bits, sizeof bits);
	for (int i = 0; i < 5; i++)
		printf("%08x", s.h[i]);
}

/* The stream that zlib would make of the bytes, were it told not to compress them. The caller
 * frees it. */
static uint8_t *stream_of(const uint8_t *bytes, size_t size, size_t *length)
{
	size_t pieces = size ? (size + PIECE - 1) / PIECE : 1;
	uint8_t *stream = malloc(size + 5 * pieces + 6), *to = stream;
	uint32_t a = 1, b = 0;

	if (!stream)
		lind_die("no memory");
	*to++ = 0x78;
	*to++ = 0x01;
	for (size_t at = 0; pieces--; at += PIECE) {
		size_t n = size - at < PIECE ? size - at : PIECE;

		*to++ = !pieces;
		*to++ = (uint8_t)n;
		*to++ = (uint8_t)(n >> 8);
		*to++ = (uint8_t)~n;
		*to++ = (uint8_t)(~n >> 8);
		if (n)
			memcpy(to, bytes + at, n);
		to += n;
	}
	for (size_t i = 0; i < size; i++) {
		a = (a + bytes[i]) % 65521;
		b = (b + a) % 65521;
	}
	*to++ = (uint8_t)(b >> 8);
	*to++ = (uint8_t)b;
	*to++ = (uint8_t)(a >> 8);
	*to++ = (uint8_t)a;
	*length = (size_t)(to - stream);
	return stream;
}

static void print_whole(const uint8_t *bytes, size_t size)
{
	static const char digits[] =
	    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
	size_t length;
	uint8_t *stream = stream_of(bytes, size, &length);

	printf("literal %zu\n", size);
	for (size_t at = 0; at < length; at += LINE) {
		size_t n = length - at < LINE ? length - at : LINE;

		putchar((int)(n <= 26 ? 'A' + n - 1 : 'a' + n - 27));
		for (size_t i = 0; i < n; i += 4) {
			uint32_t word = 0;
			char text[5];

			for (size_t k = 0; k < 4; k++)
				word = word << 8 | (i + k < n ? stream[at + i + k] : 0);
			for (int k = 5; k--; word /= 85)
				text[k] = digits[word % 85];
			fwrite(text, 1, sizeof text, stdout);
		}
		putchar('\n');
	}
	putchar('\n');
	free(stream);
}

void patch_print_objects(const struct patch_side *old, const struct patch_side *new)
{
	printf("index ");
	print_object(old->bytes, old->size, old->is_there);
	printf("..");
	print_object(new->bytes, new->size, new->is_there);
}

void patch_print_binary(const struct patch_side *old, const struct patch_side *new)
{
	printf("GIT binary patch\n");
	print_whole(new->bytes, new->size);
	print_whole(old->bytes, old->size);
}
