/* Scripts: the interpreter that runs one, and its arguments. For grates that run programs which
 * the kernel cannot find. */
#ifndef LIND_SDK_SCRIPT_H
#define LIND_SDK_SCRIPT_H

#include <lind/raw.h>
#include <stddef.h>
#include <stdint.h>

#define SCRIPT_INTERPRETERS 5 /* how many may interpret one another, as Linux has it */
#define SCRIPT_HEAD         256  /* bytes of a file that are looked at to see how it is run */

/* Arguments in this grate's memory. All zero at first; lind_script_done_ frees them. */
struct lind_script_words {
	uint32_t *list;  /* what the kernel reads: addresses, then 0 */
	size_t count, room;
	char *text;
	size_t used;
};

/* Whether a file that begins so is a script. */
static inline int lind_is_script_(const char *head)
{
	return head[0] == '#' && head[1] == '!';
}

/*
 * `head` is how a script begins, at most SCRIPT_HEAD bytes and a NUL, and is changed. Makes `argv`
 * its interpreter, the interpreter's option, `script` and argv[1] and so on, all of them in
 * `words`; `*interpreter` is in `head`. 0, -ENOEXEC for a line that names none, or what went wrong.
 */
int lind_script_(
    char *head, const char *script, struct lind_script_words *words, struct lind_arg *argv, char **interpreter);
void lind_script_done_(struct lind_script_words *words);

#endif
