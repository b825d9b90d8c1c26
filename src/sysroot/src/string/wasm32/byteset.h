/* Sets of bytes, asked 16 bytes at a time. */
#include "vector.h"

/* A row of bits for each low half of a byte; a bit of it is the high half. Two tables, since a row
 * has 16 bits. */
struct byteset {
	v16 low, high;
};

static inline struct byteset byteset(const char *members)
{
	unsigned char rows[2][16] __attribute__((__aligned__(16))) = { 0 };
	for (const unsigned char *m = (const void *)members; *m; m++) rows[*m >> 7][*m & 15] |= 1 << (*m >> 4 & 7);
	return (struct byteset){ *(v16 *)rows[0], *(v16 *)rows[1] };
}

/* Bit i: whether byte i is a member. 0 is none. */
static inline unsigned members(struct byteset set, v16 v)
{
	const v16 bits = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	/* An index of more than 15 finds 0: that chooses the table. */
	v16 row = __builtin_wasm_swizzle_i8x16(set.low, v & splat(0x8f)) |
		__builtin_wasm_swizzle_i8x16(set.high, (v ^ splat(0x80)) & splat(0x8f));
	v16 bit = __builtin_wasm_swizzle_i8x16(bits, v >> 4);
	return equal_mask(row & bit, splat(0)) ^ 0xffff;
}
