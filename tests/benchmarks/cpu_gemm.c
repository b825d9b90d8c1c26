/* C kernel: a product of two 256 x 256 matrices of doubles, written as in a textbook. */
#include "bench.h"

#define N     256
#define LOOPS 10

static double a[N][N], b[N][N], c[N][N];

static void gemm(void)
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++)
			c[i][j] = 0;
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j];
	}
}

int main(void)
{
	double sum = 0;
	long long start;

	/* Small integers: every product and sum is exact, in whatever order it is computed. */
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = (double)(bench_random() % 16);
			b[i][j] = (double)(bench_random() % 16);
		}
	gemm();
	start = gettimens();
	for (int loop = 0; loop < LOOPS; loop++) {
		gemm();
		a[loop][loop] += 1;
	}
	emit_since("CPU gemm", N, LOOPS, start);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			sum += c[i][j] * (double)(i + 1);
	bench_expect("gemm", (unsigned long long)sum, 0x1c19e387c2);
	return 0;
}
