/* Functions that the compiler driver makes every caller of setjmp call, so that a handler may leave
 * that caller by a jump into it (scripts/driver/jumps.py): each does an operation that might fault
 * in such a function, or does nothing, and is there to be interrupted. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

/* The engine does not interrupt a function that calls this, only the functions that it calls. A
 * signal is taken at the loads, which the compiler keeps: not at the first and last instructions of
 * a function. */
void __lind_poll(void)
{
	static const int nothing = 0;
	for (int i = 0; i < 4; i++)
		__atomic_load_n((volatile int *)&nothing, __ATOMIC_SEQ_CST);
}

/* Reads the first and last of some bytes, which lie in two pages at most. */
void __lind_reads(const volatile unsigned char *at, uint32_t size)
{
	*at;
	if ((uintptr_t)at % PAGE + size > PAGE) at[size-1];
}

/* Writes them back unchanged. Another thread may write them meanwhile. */
void __lind_writes(volatile unsigned char *at, uint32_t size)
{
	__atomic_fetch_or(at, 0, __ATOMIC_SEQ_CST);
	if ((uintptr_t)at % PAGE + size > PAGE)
		__atomic_fetch_or(&at[size-1], 0, __ATOMIC_SEQ_CST);
}

/* Divides, so that the division may trap here. */
void __lind_quotient32(int32_t a, int32_t b)
{
	volatile int32_t quotient = a / b;
	(void)quotient;
}

void __lind_quotient64(int64_t a, int64_t b)
{
	volatile int64_t quotient = a / b;
	(void)quotient;
}

void __lind_divisor(uint64_t b)
{
	/* The compiler would turn a constant into comparisons. */
	volatile uint64_t dividend = 1;
	dividend /= b;
}

void __lind_memcpy(void *to, const void *from, size_t size) { memcpy(to, from, size); }
void __lind_memmove(void *to, const void *from, size_t size) { memmove(to, from, size); }
void __lind_memset(void *to, int value, size_t size) { memset(to, value, size); }

/* By their names, the compiler takes these for functions that no jump comes out of. */
void *__lind_malloc(size_t size) { return malloc(size); }
void __lind_free(void *at) { free(at); }
