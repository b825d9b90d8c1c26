/* Between the SDK's own files. */
#ifndef LIND_SDK_H
#define LIND_SDK_H

#include <lind/options.h>
#include <lind/raw.h>
#include <stdbool.h>
#include <time.h>

/* Of a table by cage: see LIND_CLIENT_LEAF. */
#define LIND_CLIENT_LEAVES (0x100000000ull / LIND_CLIENT_LEAF)

/* How many handlers lind_watch_clients may add. */
#define LIND_WATCHED 16

/* A line of the manifest for a call that the SDK handles itself. */
#define LIND_FOLLOWS(name) __asm__(".section .custom_section.lind.grate,\"\",@\n.asciz \"follows " #name "\"\n.text\n")

void lind_set_name(const char *argv0);
/* The words after a grate's options, for messages. */
extern const char lind_operands_[];
/* Errors from here on are not mistakes in the file that options came from. */
void lind_left_file(void);
/* Has the options read of a grate that has none of its own: --help and --explain. */
void lind_common_options_(int *argc, char ***argv);
/* Ends a grate whose guard and whose handlers do not belong together; NULL in a grate without a
 * guard. */
void lind_check_guard_(const struct lind_handler *on, size_t count) __attribute__((weak));

/* Sets an option when others were read: --name or --name=VALUE. `wrong` says what is wrong. */
void lind_option_again_(const struct lind_option *options, size_t count, const char *word, char *wrong, size_t size);

/* explain.c */
void lind_explains_(void);
void lind_explain_begin_(void);
void lind_explain_list_(const char *name);
void lind_explain_call_(uint32_t nr, const char *words);
__attribute__((noreturn)) void lind_explain_end_(void);
/* Of a table whose entries from `own` on are the SDK's. */
__attribute__((noreturn)) void lind_explain_table_(const struct lind_spawn_handler *table, size_t own, size_t count);

void lind_watch_clients(struct lind_spawn_handler *table, size_t *count);

/* Around a call that makes a child. `parent` is NULL for the grate's own first program; `child`
 * is what the call returned. */
void lind_birth_begins(void);
void lind_birth_ends(const uint64_t *parent, int64_t child, int spawned);

/* Starts the next program with these handlers and waits for it: its status, or -126 or -127 if
 * it does not start. `flags` are those of spawn. */
int lind_start_and_wait(
    const char *path, char **argv, const struct lind_spawn_handler *table, size_t count, uint32_t flags);

void lind_ended(int status);

/* The SDK's own functions for clients, besides those of the grate. */
struct lind_inner {
	void (*start)(uint64_t cage);
	void (*fork)(uint64_t parent, uint64_t cage, int spawned);
	void (*exec)(uint64_t cage);
	void (*exit)(uint64_t cage);
	/* Around the call that makes a child. */
	void (*freeze)(uint64_t cage);
	void (*thaw)(uint64_t cage);
	void (*watch)(struct lind_spawn_handler *table, size_t *count);
};
extern const struct lind_inner *lind_inner_;

/* Puts `handle` in front of the grate's own handler for a number, which goes to `own`. */
void lind_watch_(
    struct lind_spawn_handler *table, size_t *count, uint32_t nr, lind_handle_fn *handle, lind_handle_fn **own);

/* The result of a call, by the grate's own handler if it has one. A handler that lets the call
 * go on is done with it; the SDK still needs the result. */
static inline int64_t lind_outcome_(lind_handle_fn *own, const struct lind_call *c)
{
	int64_t result = own ? own(c) : LIND_PASS;

	return result == LIND_PASS ? lind_forward(c) : result;
}

/* Makes the calls by which clients come and change part of the manifest. */
void lind_follow_births(void);

extern const struct lind_lifecycle *lind_hooks_;

static inline int64_t lind_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
