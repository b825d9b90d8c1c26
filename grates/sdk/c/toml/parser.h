/* Declarations that the files of the TOML parser share: parser.c has the structure of a file,
 * text.c comments, strings and keys, number.c numbers. */
#ifndef LIND_TOML_PARSER_H
#define LIND_TOML_PARSER_H

#include <lind/toml.h>
#include <stdio.h>

struct parser {
	const char *file, *at, *end, *line_start;
	unsigned line, depth;
	struct lind_toml_error *error;
};

/* Reports a mistake at `where`, a place in the line that the parser is in. */
__attribute__((format(printf, 3, 4))) void *lind_toml_fail(
    struct parser *p, const char *where, const char *format, ...);
struct lind_toml *lind_toml_new(struct parser *p, const char *where, enum lind_toml_type type);

/* A character of a comment or string. 0, with an error, if it may not stand there. */
size_t lind_toml_read_char(struct parser *p);
/* "basic" or 'literal'. The text and its length; NULL is an error. */
char *lind_toml_read_string(struct parser *p, size_t *length);
char *lind_toml_read_key(struct parser *p);

/* Words and numbers: up to what can end a value. */
size_t lind_toml_word(const struct parser *p);
struct lind_toml *lind_toml_read_number(struct parser *p);

static inline int peek(const struct parser *p)
{
	return p->at < p->end ? (unsigned char)*p->at : EOF;
}

static inline bool accept(struct parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

/* 99 for what is none. */
static inline int digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

#endif
