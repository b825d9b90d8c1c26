/* C kernel: the loop of a bytecode interpreter, counting the primes below 200,000 with a sieve. */
#include "bench.h"

#include <stdint.h>
#include <string.h>

#define LIMIT 200000
#define LOOPS 5

enum op { SET, MOVE, ADD, ADDI, LESS, JUMPZ, JUMP, LOAD, STORE, HALT };

struct instruction {
	uint8_t op, a, b, c;
	int32_t value;
};

enum reg { I, J, COUNT, ONE, BOUND, FLAG, TEST };

/* for (i = 2; i < bound; i++) if (!flags[i]) { count++; for (j = i + i; j < bound; j += i) flags[j] = 1; } */
static const struct instruction program[] = {
	{ SET, I, 0, 0, 2 },
	{ SET, COUNT, 0, 0, 0 },
	{ SET, ONE, 0, 0, 1 },
	{ SET, BOUND, 0, 0, LIMIT },
	{ LESS, TEST, I, BOUND, 0 }, /* 4 */
	{ JUMPZ, TEST, 0, 0, 17 },
	{ LOAD, FLAG, I, 0, 0 },
	{ JUMPZ, FLAG, 0, 0, 9 },
	{ JUMP, 0, 0, 0, 15 },
	{ ADDI, COUNT, COUNT, 0, 1 }, /* 9 */
	{ ADD, J, I, I, 0 },
	{ LESS, TEST, J, BOUND, 0 }, /* 11 */
	{ JUMPZ, TEST, 0, 0, 15 },
	{ STORE, ONE, J, 0, 0 },
	{ JUMP, 0, 0, 0, 18 },
	{ ADDI, I, I, 0, 1 }, /* 15 */
	{ JUMP, 0, 0, 0, 4 },
	{ HALT, COUNT, 0, 0, 0 }, /* 17 */
	{ ADD, J, J, I, 0 }, /* 18 */
	{ JUMP, 0, 0, 0, 11 },
};

static int64_t memory[LIMIT];

static int64_t run(const struct instruction *code, unsigned long long *steps)
{
	int64_t r[16] = { 0 };
	int32_t pc = 0;
	unsigned long long count = 0;

	for (;; count++) {
		struct instruction in = code[pc++];

		switch ((enum op)in.op) {
		case SET: r[in.a] = in.value; break;
		case MOVE: r[in.a] = r[in.b]; break;
		case ADD: r[in.a] = r[in.b] + r[in.c]; break;
		case ADDI: r[in.a] = r[in.b] + in.value; break;
		case LESS: r[in.a] = r[in.b] < r[in.c]; break;
		case JUMPZ: if (!r[in.a]) pc = in.value; break;
		case JUMP: pc = in.value; break;
		case LOAD: r[in.a] = memory[r[in.b]]; break;
		case STORE: memory[r[in.b]] = r[in.a]; break;
		case HALT: *steps += count; return r[in.a];
		}
	}
}

int main(void)
{
	unsigned long long steps = 0, primes = 0;
	long long start = gettimens();

	for (int loop = 0; loop < LOOPS; loop++) {
		memset(memory, 0, sizeof memory);
		primes += (unsigned long long)run(program, &steps);
	}
	emit_since("CPU interp", LIMIT, LOOPS, start);
	bench_expect("primes", primes, 17984ULL * LOOPS);
	bench_expect("steps", steps, 4616004ULL * LOOPS);
	return 0;
}
