/* Measures the cost of typed handlers: interleaved pairs of batches behind cost_grate. Prints `name
 * loops typed_ns raw_ns`, medians. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 101

__attribute__((import_module("lind"), import_name("syscall"))) long long raw(int nr, unsigned long long a,
    unsigned long long b, unsigned long long c, unsigned long long d, unsigned long long e, unsigned long long f);

static double batch(int nr, int loops, unsigned a, unsigned b)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < loops; i++)
		if (raw(nr, a, b, 0, 0, 0, 0) < 0)
			abort();
	clock_gettime(CLOCK_MONOTONIC, &to);
	return ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / loops;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void pair(const char *name, int typed, int plain, int loops, unsigned a, unsigned b)
{
	double t[PAIRS], p[PAIRS];

	for (int i = 0; i < PAIRS; i++)
		if (i & 1) {
			t[i] = batch(typed, loops, a, b);
			p[i] = batch(plain, loops, a, b);
		} else {
			p[i] = batch(plain, loops, a, b);
			t[i] = batch(typed, loops, a, b);
		}
	qsort(t, PAIRS, sizeof *t, order);
	qsort(p, PAIRS, sizeof *p, order);
	printf("%-8s %6d  %.1f  %.1f\n", name, loops, t[PAIRS / 2], p[PAIRS / 2]);
}

int main(void)
{
	static struct stat st;

	pair("answer", SYS_getpid, SYS_getppid, 20000, 0, 0);
	pair("forward", SYS_geteuid, SYS_getegid, 20000, 0, 0);
	pair("path", SYS_stat, SYS_lstat, 2000, (unsigned)(size_t)"/etc/passwd", (unsigned)(size_t)&st);
	return 0;
}
