/* Paths against the patterns of rules. */
#ifndef WRITE_FILTER_NAMES_H
#define WRITE_FILTER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* BELOW is also what is protected itself. */
enum relation { APART, ABOVE, BELOW };

bool matches(const char *path, const char *pattern);
size_t first(const char *path, const char **name, const char **rest);
int folded(const char **at, const char *end);
bool same_name(const char *a, size_t a_length, const char *b, size_t b_length);
bool is_one_of(const char *pattern, size_t pattern_length, const char *name, size_t length);
enum relation relation(const char *path, const char *protected);
const char *below(const char *path, const char *directory);

#endif
