/* C kernel: the loop of a bytecode interpreter with 32-bit instructions, sieving the primes below
 * 200,000. */
#include "bench.h"

#include <stdint.h>
#include <string.h>

#define LIMIT 200000
#define LOOPS 5

enum op { SET, MOVE, ADD, ADDI, LESS, JUMPZ, JUMP, LOAD, STORE, HALT };

enum reg { I, J, COUNT, ONE, BOUND, FLAG, TEST };

/* An instruction: the operation in the low byte, then register a, then either b and c or a signed
 * 16-bit value. */
#define OP(op, a, b, c)         ((uint32_t)(op) | (uint32_t)(a) << 8 | (uint32_t)(b) << 16 | (uint32_t)(c) << 24)
#define IMMEDIATE(op, a, value) ((uint32_t)(op) | (uint32_t)(a) << 8 | (uint32_t)(uint16_t)(value) << 16)

/* for (i = 2; i < bound; i++) if (!flags[i]) { count++; for (j = i + i; j < bound; j += i) flags[j]
 * = 1; } */
static const uint32_t program[] = {
	IMMEDIATE(SET, I, 2),
	IMMEDIATE(SET, COUNT, 0),
	IMMEDIATE(SET, ONE, 1),
	OP(LESS, TEST, I, BOUND), /* outer: */
	IMMEDIATE(JUMPZ, TEST, 11), /* to the end */
	OP(LOAD, FLAG, I, 0),
	IMMEDIATE(JUMPZ, FLAG, 1),
	IMMEDIATE(JUMP, 0, 6), /* to next */
	OP(ADDI, COUNT, COUNT, 1),
	OP(ADD, J, I, I),
	OP(LESS, TEST, J, BOUND), /* inner: */
	IMMEDIATE(JUMPZ, TEST, 2), /* to next */
	OP(STORE, ONE, J, 0),
	IMMEDIATE(JUMP, 0, 3), /* to more */
	OP(ADDI, I, I, 1), /* next: */
	IMMEDIATE(JUMP, 0, -13), /* to outer */
	OP(HALT, COUNT, 0, 0),
	OP(ADD, J, J, I), /* more: */
	IMMEDIATE(JUMP, 0, -9), /* to inner */
};

static int64_t memory[LIMIT];

static __attribute__((noinline)) int64_t run(const uint32_t *pc)
{
	int64_t r[256] = { [BOUND] = LIMIT };

	for (;;) {
		uint32_t in = *pc++;
		int64_t *a = &r[in >> 8 & 255];
		uint32_t b = in >> 16 & 255, c = in >> 24;
		int32_t value = (int16_t)(in >> 16);

		switch ((enum op)(in & 255)) {
		case SET:
			*a = value;
			break;
		case MOVE:
			*a = r[b];
			break;
		case ADD:
			*a = r[b] + r[c];
			break;
		case ADDI:
			*a = r[b] + (int8_t)c;
			break;
		case LESS:
			*a = r[b] < r[c];
			break;
		case JUMPZ:
			if (!*a)
				pc += value;
			break;
		case JUMP:
			pc += value;
			break;
		case LOAD:
			*a = memory[r[b]];
			break;
		case STORE:
			memory[r[b]] = *a;
			break;
		case HALT:
			return *a;
		}
	}
}

int main(void)
{
	unsigned long long primes = 0;
	long long start = gettimens();

	for (int loop = 0; loop < LOOPS; loop++) {
		memset(memory, 0, sizeof memory);
		primes += (unsigned long long)run(program);
	}
	emit_since("CPU interp", LIMIT, LOOPS, start);
	bench_expect("primes", primes, 17984ULL * LOOPS);
	return 0;
}
