/*
 * Settings of grates that do not fit on a command line. Users write them in a TOML file, which an
 * option names: LIND_OPTION("-", "config", "toml"). lind-boot reads it, and the grate gets the
 * values with their places.
 *
 *	struct lind_config *config = lind_config_load(value_of_the_option);
 *	const char *log = lind_config_string(config, "log", NULL);
 *	struct lind_config *rules = lind_config_get(config, "rule", LIND_CONFIG_ARRAY);
 *
 *	for (struct lind_config *rule = lind_config_first(rules); rule; rule = rule->next)
 *		add_rule(lind_config_need(rule, "call", LIND_CONFIG_STRING)->string,
 *		    lind_config_integer(rule, "times", 0, 1000, 1));
 *	lind_config_no_others(config);
 *
 * All of these end the grate with a message where something is wrong: `FILE:LINE:COLUMN: what`,
 * status 125.
 *
 * There are no dates and times, and no inf and nan. Strings have no NUL. Integers go up to 64 bits,
 * so that masks can be written. A file has at most 1 MiB.
 */
#ifndef LIND_CONFIG_H
#define LIND_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lind_config_type {
	LIND_CONFIG_TABLE = 1,
	LIND_CONFIG_ARRAY,
	LIND_CONFIG_STRING,
	LIND_CONFIG_INTEGER,
	LIND_CONFIG_FLOAT,
	LIND_CONFIG_BOOL,
};

/* A value, and where it stands. Values are kept until the process ends. */
struct lind_config {
	enum lind_config_type type;
	bool wide;   /* an integer over INT64_MAX: `integer` has its 64 bits */
	bool asked;   /* somebody looked for it */
	unsigned line, column;  /* from 1 */
	int64_t bytes, time;  /* what a text or number means as a size, and as a time in nanoseconds, or -1 */
	const char *file;
	const char *key;  /* its name in a table, else NULL */
	struct lind_config *next;  /* in the table or array that it is in, in the order of the file */
	union {
		struct {
			struct lind_config *first, *last;
			size_t count;
		};
		const char *string;
		int64_t integer;
		double number;
		bool truth;
	};
};

/* Reads the file that an option names. Never NULL. */
struct lind_config *lind_config_load(const char *value);

/* The value of a key. NULL if there is none; one of another type is an error. Type 0 is any. */
struct lind_config *lind_config_get(struct lind_config *table, const char *key, enum lind_config_type type);

/* The same for a key that has to be there. */
struct lind_config *lind_config_need(struct lind_config *table, const char *key, enum lind_config_type type);

/* The value, or `otherwise` if the key is not there. */
const char *lind_config_string(struct lind_config *table, const char *key, const char *otherwise);
bool lind_config_bool(struct lind_config *table, const char *key, bool otherwise);
int64_t lind_config_integer(struct lind_config *table, const char *key, int64_t min, int64_t max, int64_t otherwise);
double lind_config_number(struct lind_config *table, const char *key, double min, double max, double otherwise);

/* The bytes of a size such as 64M, and the nanoseconds of a time such as 10s; anything else is an
 * error. */
uint64_t lind_config_bytes(struct lind_config *value);
uint64_t lind_config_time(struct lind_config *value);

/* The first element of an array or table, which may be NULL or empty; go on with `next`. */
struct lind_config *lind_config_first(struct lind_config *value);

/* An element of an array has to be of this type. */
struct lind_config *lind_config_is(struct lind_config *value, enum lind_config_type type);

/* A key that nobody looked for, in the table or below it, is an error: a policy with a misspelt
 * key is not the policy. */
void lind_config_no_others(struct lind_config *table);

/* An error at a value. */
__attribute__((format(printf, 2, 3), noreturn)) void lind_config_die(
    const struct lind_config *at, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
