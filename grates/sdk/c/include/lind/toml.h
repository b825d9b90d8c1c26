/*
 * Configuration of grates, in TOML.
 *
 *	struct lind_toml *config = lind_toml_load("/etc/net.toml");
 *	const char *log = lind_toml_string(config, "log", NULL);
 *	struct lind_toml *rules = lind_toml_get(config, "rule", LIND_TOML_ARRAY);
 *
 *	for (struct lind_toml *rule = lind_toml_first(rules); rule; rule = rule->next)
 *		add_rule(lind_toml_need(rule, "call", LIND_TOML_STRING)->string,
 *		    lind_toml_integer(rule, "times", 0, 1000, 1));
 *	lind_toml_no_others(config);
 *
 * All of these end the grate with a message where something is wrong: `FILE:LINE:COLUMN: what`,
 * status 125.
 *
 * It is TOML 1.0 without dates, times, multi-line strings, inf and nan. Strings have no NUL.
 * Hexadecimal, octal and binary integers go up to 64 bits, so that masks can be written. A file has
 * at most 1 MiB, nested at most 32 deep.
 */
#ifndef LIND_TOML_H
#define LIND_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LIND_TOML_SIZE  (1u << 20)
#define LIND_TOML_DEPTH 32

enum lind_toml_type {
	LIND_TOML_TABLE = 1,
	LIND_TOML_ARRAY,
	LIND_TOML_STRING,
	LIND_TOML_INTEGER,
	LIND_TOML_FLOAT,
	LIND_TOML_BOOL,
};

/* A value, and where it stands. Values are kept until the process ends. */
struct lind_toml {
	enum lind_toml_type type;
	bool wide;   /* an integer over INT64_MAX: `integer` has its 64 bits */
	bool asked;   /* somebody looked for it */
	uint8_t made;   /* of the parser: how a table began */
	unsigned line, column;  /* from 1; a column is a byte */
	const char *file;
	const char *key;  /* its name in a table, else NULL */
	struct lind_toml *next;  /* in the table or array that it is in, in the order of the file */
	union {
		struct {
			struct lind_toml *first, *last;
			size_t count;
		};
		struct {
			const char *string;
			size_t length;
		};
		int64_t integer;
		double number;
		bool truth;
	};
};

struct lind_toml_error {
	unsigned line, column;
	char text[160];
};

/* Reads a file. Never NULL. */
struct lind_toml *lind_toml_load(const char *path);

/* Reads a text; `file` is its name in messages. NULL if it is not TOML: then `error` says why. */
struct lind_toml *lind_toml_parse(const char *file, const char *text, size_t length, struct lind_toml_error *error);

/* The value of a key. NULL if there is none; one of another type is an error. Type 0 is any. */
struct lind_toml *lind_toml_get(struct lind_toml *table, const char *key, enum lind_toml_type type);

/* The same for a key that has to be there. */
struct lind_toml *lind_toml_need(struct lind_toml *table, const char *key, enum lind_toml_type type);

/* The value, or `otherwise` if the key is not there. */
const char *lind_toml_string(struct lind_toml *table, const char *key, const char *otherwise);
bool lind_toml_bool(struct lind_toml *table, const char *key, bool otherwise);
int64_t lind_toml_integer(struct lind_toml *table, const char *key, int64_t min, int64_t max, int64_t otherwise);
double lind_toml_number(struct lind_toml *table, const char *key, double min, double max, double otherwise);

/* The first element of an array or table, which may be NULL or empty; go on with `next`. */
struct lind_toml *lind_toml_first(struct lind_toml *value);

/* An element of an array has to be of this type. */
struct lind_toml *lind_toml_is(struct lind_toml *value, enum lind_toml_type type);

/* A key that nobody looked for, in the table or below it, is an error: a policy with a misspelt
 * key is not the policy. */
void lind_toml_no_others(struct lind_toml *table);

/* An error at a value. */
__attribute__((format(printf, 2, 3), noreturn)) void lind_toml_die(const struct lind_toml *at, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
