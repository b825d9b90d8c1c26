/* Scripts: what runs one, and with which arguments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "script.h"

#define STRINGS (2u << 20) /* bytes of arguments that are rewritten for an interpreter */

static int words_new(struct lind_script_words *w)
{
	*w = (struct lind_script_words){
		.room = STRINGS / 8, .list = malloc(4 * (STRINGS / 8)), .text = malloc(STRINGS)
	};
	return w->list && w->text ? 0 : -ENOMEM;
}

void lind_script_done_(struct lind_script_words *w)
{
	free(w->list);
	free(w->text);
	*w = (struct lind_script_words){ 0 };
}

/* Takes over the `length` bytes, a NUL among them, that stand at the end of the text. */
static int take(struct lind_script_words *w, size_t length)
{
	if (w->count + 1 >= w->room)
		return -E2BIG;
	w->list[w->count++] = (uint32_t)(uintptr_t)(w->text + w->used);
	w->list[w->count] = 0;
	w->used += length;
	return 0;
}

static int add(struct lind_script_words *w, const char *text)
{
	size_t length = strlen(text) + 1;

	if (w->used + length > STRINGS)
		return -E2BIG;
	memcpy(w->text + w->used, text, length);
	return take(w, length);
}

/* argv without its first word. */
static int add_rest(struct lind_script_words *w, struct lind_arg argv)
{
	int r = 0;

	for (uint64_t i = 1; argv.value && !r; i++) {
		uint32_t at;
		ssize_t length;

		if ((r = lind_read(lind_at(argv, 4 * (i - 1)), &at, sizeof at)) || !at)
			return r;
		if ((r = lind_read(lind_at(argv, 4 * i), &at, sizeof at)) || !at)
			return r;
		if (w->used >= STRINGS)
			return -E2BIG;
		length = lind_read_string((struct lind_arg){ at, argv.cage }, w->text + w->used, STRINGS - w->used);
		r = length < 0 ? (length == -ENAMETOOLONG ? -E2BIG : (int)length) : take(w, (size_t)length + 1);
	}
	return r;
}

/* The first line of a script: its interpreter, and the rest as one word or NULL. */
static int first_line(char *head, char **name, char **option)
{
	char *line = head + 2 + strspn(head + 2, " \t"), *end = line + strcspn(line, "\n"), *space;

	if (!*end && strlen(head) == SCRIPT_HEAD && !strpbrk(line, " \t"))
		return -ENOEXEC;
	while (end > line && strchr(" \t", end[-1]))
		end--;
	*end = 0;
	*name = line;
	*option = NULL;
	if ((space = strpbrk(line, " \t"))) {
		*space++ = 0;
		*option = space + strspn(space, " \t");
	}
	return *line ? 0 : -ENOEXEC;
}

int lind_script_(
    char *head, const char *script, struct lind_script_words *words, struct lind_arg *argv, char **interpreter)
{
	struct lind_script_words old = *words;
	char *option;
	int r = first_line(head, interpreter, &option);

	if (r)
		return r;
	if (!(r = words_new(words)) && !(r = add(words, *interpreter)) && (!option || !(r = add(words, option))) &&
	    !(r = add(words, script)))
		r = add_rest(words, *argv);
	*argv = lind_mine(words->list);
	lind_script_done_(&old);
	return r;
}
