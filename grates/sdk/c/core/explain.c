/*
 * --explain: a grate says what it would register with its options, as JSON on standard output, and
 * ends. lind-boot explain asks it so, in a cage that can only read:
 *
 *	{"notes":[],"calls":{"0":null,"1":"may refuse"},"left":{"60":null}}
 *
 * Each call has a text for what
 * becomes of it, or null for the text of the manifest. Calls under `left` are excepted from "all".
 * Composers have `handled`, the calls that they look at if a grate inside handles them, and when
 * these enter (null: never), and `others`, those that they look at if none does.
 */
#include <stdio.h>
#include <stdlib.h>
#include "sdk.h"

#define NOTES 16

static bool explains;
static const char *(*says)(uint32_t nr);
static const char *notes[NOTES];
static size_t note_count;
static const char *between;

bool lind_explains(void)
{
	return explains;
}

void lind_explains_(void)
{
	explains = true;
}

void lind_explain_calls(const char *(*words)(uint32_t nr))
{
	says = words;
}

void lind_explain_note(const char *note)
{
	if (note_count < NOTES)
		notes[note_count++] = note;
}

static void text(const char *s)
{
	putchar('"');
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			putchar('?');
		else
			printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	putchar('"');
}

void lind_explain_list_(const char *name)
{
	printf("%s\"%s\":{", between ? "}," : ",", name);
	between = "";
}

void lind_explain_call_(uint32_t nr, const char *words)
{
	printf("%s\"%u\":", between, nr);
	between = ",";
	if (words)
		text(words);
	else
		printf("null");
}

void lind_explain_begin_(void)
{
	printf("{\"notes\":[");
	for (size_t i = 0; i < note_count; i++) {
		printf(i ? "," : "");
		text(notes[i]);
	}
	printf("]");
}

void lind_explain_end_(void)
{
	printf("}}\n");
	exit(fflush(stdout) ? 125 : 0);
}

static bool listed(const struct lind_spawn_handler *table, size_t count, uint32_t nr)
{
	for (size_t i = 0; i < count; i++)
		if (table[i].nr == nr)
			return true;
	return false;
}

/* Explains the calls that the entry for all calls covers one by one, since each has its own
 * text. */
static void covered(const struct lind_spawn_handler *table, size_t count)
{
	for (uint32_t nr = 0; nr < LIND_NUMBERS; nr++)
		if (!lind_outside_any(nr) && !listed(table, count, nr))
			lind_explain_call_(nr, says(nr));
}

void lind_explain_table_(const struct lind_spawn_handler *table, size_t own, size_t count)
{
	lind_explain_begin_();
	lind_explain_list_("calls");
	for (size_t i = 0; i < count; i++)
		if (table[i].nr == LIND_NR_ANY && says)
			covered(table, count);
		else if (i >= own)
			lind_explain_call_(table[i].nr, "sees (to know its clients)");
		else if (table[i].entry != LIND_AS_BEFORE)
			lind_explain_call_(table[i].nr, says ? says(table[i].nr) : NULL);
	lind_explain_list_("left");
	for (size_t i = 0; i < own; i++)
		if (table[i].entry == LIND_AS_BEFORE)
			lind_explain_call_(table[i].nr, NULL);
	lind_explain_end_();
}
