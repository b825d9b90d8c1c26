/* Shared parts of the benchmarks: a clock, and the one line that each data point prints. */
#ifndef BENCH_H
#define BENCH_H

/* Nanoseconds on CLOCK_MONOTONIC. */
long long gettimens(void);

/* Prints `<test>\t<param>\t<loops>\t<avg_ns>`, the only lines that benchrunner.py reads. */
void emit_result(const char *test, long param, long loops, double avg_ns);

/* emit_result for `loops` runs that began at `start`, a gettimens() value. */
void emit_since(const char *test, long param, long loops, long long start);

/* Prints `skip\t<reason>` and exits with 0: the benchmark cannot run here, which is not a
 * failure. */
_Noreturn void bench_skip(const char *reason);

/* Prints `what: strerror(errno)` on stderr and exits with 1. */
_Noreturn void bench_die(const char *what);

/* Ends a C kernel whose result is wrong, so that a fast and wrong answer never becomes a number. */
void bench_expect(const char *what, unsigned long long got, unsigned long long want);

/* The next number of a fixed sequence (xorshift64*), the same natively and in a cage. */
unsigned long long bench_random(void);

#endif
