/* How C calls C: variable arguments, structs by value, function pointers, alloca, variable-length
 * arrays, recursion. */
#include "check.h"

#include <alloca.h>
#include <stdarg.h>

struct big {
	long long a[5];
	double b;
	char c;
};

struct pair {
	int a;
	float b;
};

static struct big twice(struct big x)
{
	for (int i = 0; i < 5; i++)
		x.a[i] *= 2;
	x.b *= 2;
	x.c++;
	return x;
}

static struct pair swap(struct pair p)
{
	return (struct pair){ (int)p.b, (float)p.a };
}

static double sum(int count, ...)
{
	va_list arguments, again;
	double total = 0;

	va_start(arguments, count);
	va_copy(again, arguments);
	for (int i = 0; i < count; i++) {
		total += va_arg(arguments, int);
		total += (double)va_arg(arguments, long long);
		total += va_arg(arguments, double);
		total += va_arg(arguments, struct pair).a;
	}
	total += va_arg(again, int) * 1000;
	va_end(again);
	va_end(arguments);
	return total;
}

static int none(int first, ...)
{
	va_list arguments;

	va_start(arguments, first);
	va_end(arguments);
	return first;
}

static __attribute__((noinline)) int depth(int n)
{
	volatile char frame[200];

	frame[n % 200] = 1;
	return n == 0 ? 0 : depth(n - 1) + frame[n % 200];
}

static int add(int a, int b)
{
	return a + b;
}
static int multiply(int a, int b)
{
	return a * b;
}

static long on_stack(int n)
{
	int array[n];
	char *more = alloca((size_t)n);
	long total = 0;

	for (int i = 0; i < n; i++) {
		array[i] = i;
		more[i] = 1;
	}
	for (int i = 0; i < n; i++)
		total += array[i] + more[i];
	return total;
}

/* Many old programs leave out the mode of a file that they make. The resulting mode does not
 * matter. */
static void without_mode(void)
{
	int fd = open("made", O_WRONLY | O_CREAT);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "x", 1), 1);
	close(fd);
	CHECK_EQ(unlink("made"), 0);
	CHECK((fd = openat(AT_FDCWD, "made", O_WRONLY | O_CREAT | O_EXCL)) >= 0);
	close(fd);
	CHECK_EQ(unlink("made"), 0);
}

int main(void)
{
	int (*volatile operations[])(int, int) = { add, multiply };
	struct big x = { { 1, 2, 3, 4, 5 }, 1.5, 'c' };
	struct pair p = swap((struct pair){ 3, 4.0f });
	void *labels[] = { &&one, &&two };
	volatile int which = 1, reached = 0;

	x = twice(x);
	CHECK_EQ(x.a[4], 10);
	CHECK(x.b == 3.0 && x.c == 'd');
	CHECK(p.a == 4 && p.b == 3.0f);
	CHECK(sum(2, 1, 2ll, 3.5, p, 4, 5ll, 6.5, p) == 1 + 2 + 3.5 + 4 + 4 + 5 + 6.5 + 4 + 1000);
	CHECK_EQ(none(9), 9);
	CHECK_EQ(operations[0](3, 4) + operations[1](3, 4), 19);
	CHECK_EQ(on_stack(1000), 500500);
	CHECK_EQ(depth(20000), 20000);
	goto *labels[which];
one:
	reached = 1;
two:
	reached += 2;
	CHECK_EQ(reached, 2);
	without_mode();
	return check_done();
}
