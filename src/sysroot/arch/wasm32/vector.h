/* 16 bytes at a time. A load of an aligned block never crosses a page, so it may read past the end of a
 * string, and before its start. */
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

/* Whether 16 bytes at p lie in one page. */
static inline int in_page(const void *p)
{
	return ((uintptr_t)p & 4095) <= 4096 - 16;
}

/* From here on the engine's memory.copy and memory.fill win over a loop. */
#define BULK 64
