/* 16 bytes at a time. A load of an aligned block never crosses a page, so it may read past the end
 * of a string, and before its start. */
#include <stdint.h>

typedef uint8_t v16 __attribute__((__vector_size__(16), __may_alias__));
typedef uint8_t v16u __attribute__((__vector_size__(16), __may_alias__, __aligned__(1)));
typedef uint64_t u64u __attribute__((__may_alias__, __aligned__(1)));
typedef uint32_t u32u __attribute__((__may_alias__, __aligned__(1)));
typedef uint16_t u16u __attribute__((__may_alias__, __aligned__(1)));

/* Bit i: whether byte i of a equals byte i of b. */
static inline unsigned equal_mask(v16 a, v16 b)
{
	return __builtin_wasm_bitmask_i8x16((v16)(a == b));
}

static inline v16 splat(unsigned char c)
{
	return (v16){ c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c };
}

/* Which of the bytes are c, or 0 as well. */
static inline v16 matches(v16 v, v16 c, int or_zero)
{
	return or_zero ? (v16)(v == c) | (v16)(v == splat(0)) : (v16)(v == c);
}

/* The first matching byte from s on; no further than the block of 64 bytes with `end`, if that is
 * not 0: the result may then be at `end` or after it. Short distances come first, long ones go 64
 * bytes at a time. */
static inline __attribute__((__always_inline__))
const unsigned char *find_byte(const void *s, v16 c, int or_zero, uintptr_t end)
{
	uintptr_t at = (uintptr_t)s & -16;
	unsigned found = __builtin_wasm_bitmask_i8x16(matches(*(const v16 *)at, c, or_zero)) >> ((uintptr_t)s & 15);
	if (found) return (const unsigned char *)s + __builtin_ctz(found);
	at += 16;
	uint64_t wanted = -1ULL << (at & 63);
	for (at &= -64; !end || at < end; at += 64, wanted = -1) {
		const v16 *p = (const v16 *)at;
		v16 m0 = matches(p[0], c, or_zero), m1 = matches(p[1], c, or_zero);
		v16 m2 = matches(p[2], c, or_zero), m3 = matches(p[3], c, or_zero);
		if (!__builtin_wasm_any_true_v128((m0 | m1) | (m2 | m3))) continue;
		uint64_t low = __builtin_wasm_bitmask_i8x16(m0) | (unsigned)__builtin_wasm_bitmask_i8x16(m1) << 16;
		uint64_t high = __builtin_wasm_bitmask_i8x16(m2) | (unsigned)__builtin_wasm_bitmask_i8x16(m3) << 16;
		wanted &= low | high << 32;
		if (wanted) return (const unsigned char *)at + __builtin_ctzll(wanted);
	}
	return (const unsigned char *)end;
}

/* Converts capital letters of ASCII to small ones: the locales know no others. */
static inline v16 lower(v16 v)
{
	v16 is_upper = (v16)(v - splat('A') < splat(26));
	return v | (is_upper & splat(32));
}

/* Whether n bytes at p lie in one page. */
static inline int in_page_for(const void *p, unsigned n)
{
	return ((uintptr_t)p & 4095) <= 4096 - n;
}

static inline int in_page(const void *p)
{
	return in_page_for(p, 16);
}

/* Beyond this size the engine's memory.copy is faster. */
#define BULK 128
