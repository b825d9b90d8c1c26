/*
 * Text that guests supply, where a terminal shows it or a shell may read it: names of files,
 * programs, sockets. A terminal obeys control characters and reorders a line by characters of
 * direction; a line break begins what looks like a message of ours. lind_log and lind_die make
 * their whole line fit; what is printed otherwise passes lind_shown. In Rust, src/kernel/text.rs
 * does the same.
 */
#ifndef LIND_TEXT_H
#define LIND_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at the beginning of `size` bytes of UTF-8, and how many bytes it has; 0 if they
 * do not begin with one. */
size_t lind_text_char(const uint8_t *bytes, size_t size, uint32_t *character);

/* Whether a terminal shows a character as itself, in its place: it is not a control or format
 * character, nor a separator of lines. */
bool lind_text_seen(uint32_t character);

/* Escapes what is not seen or is not UTF-8, as \n, \u{9b}, \xff. Characters that do not fit into
 * `room` with a NUL are left out. Returns the length. */
size_t lind_text_show(const char *bytes, size_t size, char *to, size_t room);

/* A text on one line of a terminal, by lind_text_show. Valid until this thread's fourth call
 * from here. */
const char *lind_shown(const char *text);

/* A text as one word of a shell, and fit for a terminal. Valid as that of lind_shown, whose
 * calls count too. */
const char *lind_shell_word(const char *text);

#endif
