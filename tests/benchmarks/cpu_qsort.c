/* C kernel: a quicksort of its own and the C library's qsort, on 200,000 integers each. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 200000
#define LOOPS 5

static unsigned input[COUNT], numbers[COUNT];

static void quicksort(unsigned *v, long low, long high)
{
	while (high - low > 16) {
		unsigned pivot = v[low + (high - low) / 2];
		long i = low, j = high;

		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i <= j) {
				unsigned t = v[i];

				v[i++] = v[j];
				v[j--] = t;
			}
		}
		quicksort(v, low, j);
		low = i;
	}
	for (long i = low + 1; i <= high; i++) {
		unsigned t = v[i];
		long j = i;

		for (; j > low && v[j - 1] > t; j--)
			v[j] = v[j - 1];
		v[j] = t;
	}
}

static int ascending(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static unsigned long long checksum(void)
{
	unsigned long long sum = 0;

	for (int i = 0; i < COUNT; i++) {
		if (i && numbers[i - 1] > numbers[i])
			return 0;
		sum = sum * 31 + numbers[i];
	}
	return sum;
}

int main(void)
{
	long long start;

	for (int i = 0; i < COUNT; i++)
		input[i] = (unsigned)(bench_random() >> 32);
	start = gettimens();
	for (int loop = 0; loop < LOOPS; loop++) {
		memcpy(numbers, input, sizeof numbers);
		quicksort(numbers, 0, COUNT - 1);
	}
	emit_since("CPU quicksort", COUNT, LOOPS, start);
	bench_expect("quicksort", checksum(), 0x1ad602506a23b547);
	start = gettimens();
	for (int loop = 0; loop < LOOPS; loop++) {
		memcpy(numbers, input, sizeof numbers);
		qsort(numbers, COUNT, sizeof *numbers, ascending);
	}
	emit_since("libc qsort", COUNT, LOOPS, start);
	bench_expect("qsort", checksum(), 0x1ad602506a23b547);
	return 0;
}
