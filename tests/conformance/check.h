/*
 * The checks that a conformance program uses instead of assert. A check that fails says the
 * expression, what was expected, what came and errno, and the program goes on; NEED ends it, for
 * what the rest depends on. Include this first; end with `return check_done();`. A program runs in
 * an empty directory of its own and leaves it empty.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE /* compilers of C++ define it */
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

static inline int check_fail(
    const char *file, int line, const char *expression, const char *want, const char *got, int error)
{
	printf("%s:%d: %s: expected %s, got %s (errno %d, %s)\n", file, line, expression, want, got, error,
	    strerror(error));
	fflush(stdout);
	if (++check_failures == 30)
		exit(1);
	return 0;
}

static inline int check_true(const char *file, int line, const char *expression, int holds)
{
	return holds ? 1 : check_fail(file, line, expression, "true", "false", errno);
}

static inline int check_equal(const char *file, int line, const char *expression, long long got, long long want)
{
	char wanted[32], came[32];
	int error = errno;

	if (got == want)
		return 1;
	snprintf(wanted, sizeof wanted, "%lld", want);
	snprintf(came, sizeof came, "%lld", got);
	return check_fail(file, line, expression, wanted, came, error);
}

static inline int check_string(const char *file, int line, const char *expression, const char *got, const char *want)
{
	int error = errno;

	if (got && !strcmp(got, want))
		return 1;
	return check_fail(file, line, expression, want, got ? got : "NULL", error);
}

/* `failed`: the call returned what means failure for its type. */
static inline int check_errno(const char *file, int line, const char *expression, int failed, int want)
{
	int error = errno;

	if (failed && error == want)
		return 1;
	return check_fail(file, line, expression, strerror(want), failed ? strerror(error) : "success", error);
}

static inline int check_minus_one(long long value)
{
	return value == -1;
}

static inline int check_null(const void *pointer)
{
	return !pointer || pointer == (void *)-1;
}

/* True if x is. */
#define CHECK(x) check_true(__FILE__, __LINE__, #x, !!(x))
/* Two integers are equal. */
#define CHECK_EQ(x, want)  check_equal(__FILE__, __LINE__, #x, (long long)(x), (long long)(want))
#define CHECK_STR(x, want) check_string(__FILE__, __LINE__, #x, x, want)
/* x fails (-1; NULL or MAP_FAILED for a pointer) with this errno. */
#define CHECK_ERRNO(x, want) \
	(errno = 0, \
	    check_errno(__FILE__, __LINE__, #x, \
		_Generic((x), \
		    void *: check_null, \
		    char *: check_null, \
		    FILE *: check_null, \
		    DIR *: check_null, \
		    default: check_minus_one)(x), \
		want))
/* Like CHECK, and ends the program if it fails. */
#define NEED(x) \
	do { \
		if (!CHECK(x)) \
			exit(1); \
	} while (0)

/* Ends with the status that means: cannot be tested here, for this reason. */
static inline __attribute__((noreturn)) void check_skip(const char *reason)
{
	printf("%s\n", reason);
	exit(77);
}

static inline int check_done(void)
{
	if (check_failures)
		printf("%d checks failed\n", check_failures);
	return check_failures != 0;
}

/* Files of the tests: made with `content` in one go, read back whole. */
#include <fcntl.h>
#include <unistd.h>

static inline int check_file(const char *name, const char *content)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	NEED(fd >= 0);
	NEED(write(fd, content, strlen(content)) == (ssize_t)strlen(content));
	NEED(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

#endif
