/* Output of names and text that guests have written, for people: no part of it acts as a command
 * to their terminal. */
#ifndef OVERLAY_VERB_PRINT_H
#define OVERLAY_VERB_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* On standard output, behind `prefix`: in quotation marks, as git prints it, where it could be
 * taken for something else. */
void verb_print_name(const char *prefix, const char *name);
/* Contents: what a terminal would act on, but for tab and line feed, as ^X, \u{9b} or \xff. */
void verb_print_text(FILE *out, const uint8_t *bytes, size_t size);
/* A member of an object of JSON on standard output. Of what is no UTF-8 each byte becomes
 * U+FFFD; a member NAME_bytes has all of it in hexadecimal digits then. */
void verb_print_member(const char *name, const char *text);
#endif
