/* Two texts compared by lines. */
#ifndef OVERLAY_VERB_PATCH_H
#define OVERLAY_VERB_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Lines that are only in one of two texts. */
struct patch_sum {
	size_t removed, added;
};

/* In hundredths: how much of the larger text the other one has too, by lines. */
unsigned patch_similarity(const uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size);
bool patch_is_binary(const uint8_t *bytes, size_t size);
/* Prints the hunks, as diff -u has them, if `out` is not NULL. */
struct patch_sum patch_print(const uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size, FILE *out);

/* One side of a change to a file that is not text. */
struct patch_side {
	const uint8_t *bytes;
	size_t size;
	bool is_there;
};

/* Prints the line that names both as git's objects, but for its end; and the whole of both. */
void patch_print_objects(const struct patch_side *old, const struct patch_side *new);
void patch_print_binary(const struct patch_side *old, const struct patch_side *new);

#endif
