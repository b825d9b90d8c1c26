/* See bench.h. Linked into every benchmark. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

long long gettimens(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

void emit_result(const char *test, long param, long loops, double avg_ns)
{
	printf("%s\t%ld\t%ld\t%.1f\n", test, param, loops, avg_ns);
	fflush(stdout);
}

void emit_since(const char *test, long param, long loops, long long start)
{
	emit_result(test, param, loops, (double)(gettimens() - start) / (double)loops);
}

void bench_skip(const char *reason)
{
	printf("skip\t%s\n", reason);
	exit(0);
}

void bench_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

void bench_expect(const char *what, unsigned long long got, unsigned long long want)
{
	if (got == want)
		return;
	fprintf(stderr, "%s: checksum is %#llx, not %#llx\n", what, got, want);
	exit(1);
}

unsigned long long bench_random(void)
{
	static unsigned long long state = 0x9e3779b97f4a7c15;

	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1d;
}
