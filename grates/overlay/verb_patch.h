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

#endif
