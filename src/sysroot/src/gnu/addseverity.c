/* Severities that programs name themselves: addseverity(3), and fmtmsg(3), which looks them up. */
#include <fmtmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lock.h"

static struct severity {
	struct severity *next;
	int number;
	char text[];
} *known;
static volatile int lock[1];

/* The text that fmtmsg prints, with the colon, or NULL. A severity that was removed may still be
 * printed: it is never freed. */
hidden const char *__lind_severity(int number)
{
	struct severity *s;

	LOCK(lock);
	for (s = known; s && s->number != number; s = s->next);
	UNLOCK(lock);
	return s ? s->text : 0;
}

int addseverity(int number, const char *text)
{
	struct severity *new = 0, **at;
	int result = MM_OK;

	if (number <= MM_INFO) return MM_NOTOK;
	if (text) {
		size_t size = strlen(text) + sizeof ": ";
		new = malloc(sizeof *new + size);
		if (!new) return MM_NOTOK;
		new->number = number;
		snprintf(new->text, size, "%s: ", text);
	}
	LOCK(lock);
	for (at = &known; *at && (*at)->number != number; at = &(*at)->next);
	if (new) {
		new->next = *at ? (*at)->next : 0;
		*at = new;
	} else if (*at) {
		*at = (*at)->next;
	} else {
		result = MM_NOTOK;
	}
	UNLOCK(lock);
	return result;
}
