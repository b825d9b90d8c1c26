/*
 * Composing grates: a grate that has other grates between `%{` and `%}` on its command line, and
 * decides for each call of the program after them whether they get it.
 *
 *	clamp_grate OPTIONS %{ inner_grate OPTIONS %} program
 *
 * Built on interposing registration, spawn and exec only: docs/composition.md says how.
 */
#ifndef LIND_COMPOSE_H
#define LIND_COMPOSE_H

#include <lind/raw.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The call by which a bracket `%}` talks to the nearest composer; the first argument says what
 * about. Nobody else handles it: ENOSYS. The bracket makes its own requests to the system this way,
 * so that the grates inside do not see it as a client.
 */
#define LIND_BRACKET       1090
#define LIND_BRACKET_CLOSE 1 /* this cage's table is what the inner grates are seen through */
#define LIND_BRACKET_ENTER \
	2 /* (name): this cage goes on with what follows; 1 if that is another `%{`. Into the 64 bytes at name goes the composer's, for messages */
#define LIND_BRACKET_SPAWN 3 /* (argv, envp): this program once more, in a child */
#define LIND_BRACKET_WAIT  4 /* (pid): what a shell would say the child ended with */
#define LIND_BRACKET_EXIT  5 /* (status) */

#define LIND_STACKS 4

/* A line of the manifest: how many `%{ ... %}` the grate takes. */
#define LIND_COMPOSES(count) \
	__asm__(".section .custom_section.lind.grate,\"\",@\n.asciz \"composes " #count "\"\n.text\n")

struct lind_composer {
	/* How many `%{ ... %}` there are, one after the other. */
	unsigned stacks;
	/* The handler for a number, or NULL: then such calls of the program go where the composer's own
	 * would go, at no cost. Asked once for every number below 1000, 1001, 1002, 1003 and 1004, and
	 * those that an inner grate handles. */
	lind_handle_fn *(*choose)(uint32_t nr);
	/* May be NULL. For --explain: when a call with this handler enters. Empty for always, NULL for
	 * never. */
	const char *(*when)(uint32_t nr, lind_handle_fn *handle);
	/* State for each client: the program after the last `%}`, and its descendants. */
	struct lind_lifecycle lifecycle;
	/* May be NULL. The program after the last `%}` is about to start as this client. */
	void (*entered)(void *client, uint64_t cage);
	/* May be NULL: what the grates of stack i send on to where the composer's own calls go, for
	 * numbers that they handle. */
	lind_handle_fn *(*leaving)(unsigned stack, uint32_t nr);
};

/* Whether a grate of stack `stack` handles this number. */
bool lind_handled_inside(unsigned stack, uint32_t nr);

/* Whether a grate of the stack is in Lind's style. Those take the cage of the first argument for
 * the client, so that an argument of ours would be a client's that they do not know. */
bool lind_style_inside(unsigned stack);

/* Makes the call by the table that stack `stack` ends in, as if its clients had made it. */
int64_t lind_enter(unsigned stack, const struct lind_call *call);

/* The cage by whose table lind_enter makes calls. */
uint64_t lind_view(unsigned stack);

/* As lind_grate_run, for argv[1] = "%{". */
int lind_compose_run(const struct lind_composer *composer, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
