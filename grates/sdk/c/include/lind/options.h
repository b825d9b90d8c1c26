/* A grate as a program: its options, the files that they name, its explanation, its messages. */
#ifndef LIND_OPTIONS_H
#define LIND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A grate's own options come before the name of the next program; `--` ends them. Understood are
 * --name VALUE, --name=VALUE, -n VALUE, -nVALUE; --help prints the list. `set` returns NULL, or
 * what is wrong with the value.
 */
struct lind_option {
	char letter;  /* or 0 */
	const char *name; /* without --; or NULL */
	const char *value; /* what to call the value in the help text; NULL if the option has none */
	const char *help;
	const char *(*set)(const char *value);
};

/*
 * Beside the list, in the file that has it, a line for each option that takes a value:
 * LIND_OPTION("p", "policy", "reads"), with "-" for a missing letter or name. lind-boot reads them
 * before the grate runs, to know where its options end, and to open the files that they name: with
 * the user's rights, outside the root, where no program can change them. The word for the value:
 * `value` is a text; `bytes` a size and `time` a time, written as 64M and 10s, of which the grate
 * gets the plain number of bytes or nanoseconds (`=bytes`: SIZE or NAME=SIZE, `=limit`:
 * LIMIT=AMOUNT); `reads` a file to read, `writes` a file to write from the start, `creates`
 * a file that must not exist, `keeps` a file to read that is made if missing, `updates` a file to
 * read and change that is made if missing; `reads=` FILE=..., `=writes` ...=FILE. A comma precedes
 * the ending of a second file beside it. `state` is as `updates`, unless the value ends with a
 * slash or is a directory: then the directory has the files state.db and state.db-wal and the
 * directory data.
 */
#define LIND_OPTION(letter, name, what) \
	__asm__(".section .custom_section.lind.grate,\"\",@\n.asciz \"option " letter " " name " " what "\"\n.text\n")

/*
 * Opens the file that an option of LIND_OPTION names: the one that lind-boot has opened, or, of
 * `root:PATH`, PATH inside the root with these flags. `ending` means the file beside it, or NULL;
 * "/data" that directory of a `state`, in which names are numbers. -1 and errno if there is none.
 */
int lind_open_file(const char *value, const char *ending, int flags, unsigned mode);
FILE *lind_read_file(const char *value);

/* The path inside the root that is meant; NULL where lind-boot opens the file. */
const char *lind_path_inside(const char *value);

/* The user's name for such a file. */
const char *lind_file_name(const char *value);

/* The `set` of an option without a value: LIND_SETS(set_quiet, quiet = true) */
#define LIND_SETS(set, ...) \
	static const char *set(const char *value_) \
	{ \
		(void)value_; \
		__VA_ARGS__; \
		return NULL; \
	}

/* The `set` of an option whose value is kept as it is: LIND_KEEPS(set_log, log_path) */
#define LIND_KEEPS(set, to) \
	static const char *set(const char *value_) \
	{ \
		to = value_; \
		return NULL; \
	}

/* The `set` of a plain number: NULL, or "must be a number". */
const char *lind_number(const char *value, uint64_t *number);

/* Reads the options and takes them out of argc and argv, so that argv[1] is the next program.
 * Prints what is wrong and exits with 125. `about` is the first line of the help text. */
void lind_options(const struct lind_option *options, size_t count, const char *about, int *argc, char ***argv);

/*
 * Whether --explain was given: then lind_grate_run starts nothing, and prints what it would
 * register. The grate can skip its preparations for clients, since it can only read.
 */
bool lind_explains(void);

/* For --explain: `words` says what becomes of a call that is registered, where options say more
 * than the manifest. NULL: what that has. */
void lind_explain_calls(const char *(*words)(uint32_t nr));

/* Adds a note that holds for all calls. */
void lind_explain_note(const char *note);

/* The name of this grate, for messages. */
const char *lind_name(void);

/* The row of a system call in the table of lind/syscall_table.h, or NULL; and all rows by their
 * place in it, until the result is NULL. */
struct lind_syscall;
const struct lind_syscall *lind_syscall(uint32_t nr);
const struct lind_syscall *lind_syscall_at(size_t i);

/* For messages: the name of a system call and that of an errno, or "?". */
const char *lind_call_name(uint32_t nr);
const char *lind_errno_name(int error);
/* The errno with this name, or 0. */
int lind_errno_named(const char *name);

/* Prints `name: message` and a line's end to standard error, in one write. */
__attribute__((format(printf, 1, 2))) void lind_log(const char *format, ...);

/* Tells whoever started the runner that a call of `client` was refused with `error` (0: that it
 * was ended): by which rule, what the call was about, and what would have to be allowed. `nr` is
 * its number, or 0. Zero where nobody listens: then a line of lind_log says it. */
int lind_denied(uint64_t client, uint32_t nr, int error, const char *rule, const char *what, const char *subject);

/*
 * The same before a call of `client` is refused, in a handler of its: if the user wishes, it waits
 * until somebody has answered, with signals ending the wait. LIND_ALLOWED: the call may go on, as
 * if the rules allowed it. LIND_INTERRUPTED: it fails with EINTR. Otherwise it is refused.
 */
enum { LIND_UNHEARD, LIND_TOLD, LIND_ALLOWED, LIND_INTERRUPTED };
int lind_ask(uint64_t client, uint32_t nr, int error, const char *rule, const char *what, const char *subject);

/* As lind_log, then exits with 125. */
__attribute__((format(printf, 1, 2), noreturn)) void lind_die(const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
