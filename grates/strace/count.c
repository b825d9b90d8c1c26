/* -c: how often, how long, how many failed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "strace.h"

#define NUMBERS 1100

static struct count {
	uint64_t calls, errors, nanoseconds;
	uint32_t nr;
} counts[NUMBERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Numbers beyond the table share the last place. */
void count_call(uint32_t nr, int64_t nanoseconds, bool failed)
{
	struct count *c = &counts[nr < NUMBERS ? nr : NUMBERS - 1];

	pthread_mutex_lock(&lock);
	c->nr = nr;
	c->calls++;
	c->errors += failed;
	c->nanoseconds += (uint64_t)nanoseconds;
	pthread_mutex_unlock(&lock);
}

static int longest_first(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	if (x->nanoseconds != y->nanoseconds)
		return x->nanoseconds < y->nanoseconds ? 1 : -1;
	return x->calls < y->calls ? 1 : x->calls > y->calls ? -1 : 0;
}

static void error_count(char *to, size_t size, uint64_t errors)
{
	*to = 0;
	if (errors)
		snprintf(to, size, "%llu", (unsigned long long)errors);
}

void count_report(void (*print)(const char *line, size_t length))
{
	static const char head[] = "% time     seconds  usecs/call     calls    errors syscall\n"
				   "------ ----------- ----------- --------- --------- ----------------\n";
	struct count total = { 0 };
	char line[160], errors[24];
	int n;

	for (size_t i = 0; i < NUMBERS; i++) {
		total.calls += counts[i].calls;
		total.errors += counts[i].errors;
		total.nanoseconds += counts[i].nanoseconds;
	}
	qsort(counts, NUMBERS, sizeof *counts, longest_first);
	print(head, sizeof head - 1);
	for (size_t i = 0; i < NUMBERS && counts[i].calls; i++) {
		const struct count *c = &counts[i];
		const struct lind_syscall *row = lind_syscall(c->nr);
		char name[24];

		snprintf(name, sizeof name, "syscall_%u", c->nr);
		error_count(errors, sizeof errors, c->errors);
		n = snprintf(line, sizeof line, "%6.2f %11.6f %11llu %9llu %9s %s\n",
		    total.nanoseconds ? 100.0 * (double)c->nanoseconds / (double)total.nanoseconds : 0.0,
		    (double)c->nanoseconds / 1e9, (unsigned long long)(c->nanoseconds / c->calls / 1000),
		    (unsigned long long)c->calls, errors, row ? row->name : name);
		print(line, (size_t)n);
	}
	error_count(errors, sizeof errors, total.errors);
	n = snprintf(line, sizeof line,
	    "------ ----------- ----------- --------- --------- ----------------\n%6.2f %11.6f %11llu %9llu %9s total\n",
	    100.0, (double)total.nanoseconds / 1e9,
	    (unsigned long long)(total.calls ? total.nanoseconds / total.calls / 1000 : 0),
	    (unsigned long long)total.calls, errors);
	print(line, (size_t)n);
}
