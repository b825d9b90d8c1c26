/* Telling whoever started the runner what was refused. */
#include <errno.h>
#include <lind/raw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sdk.h"

#define MAY_WAIT 1

/* The result of the call `denied`, made for `by`. */
static int64_t say(uint64_t by, uint64_t client, uint32_t nr, int error, const char *rule, const char *what,
    const char *subject, uint64_t flags)
{
	static const size_t ends = 3;
	uint64_t self = lind_self();
	size_t size = strlen(rule) + strlen(what) + strlen(subject) + ends;
	char *text = malloc(size);
	int64_t said;

	if (!text)
		return -ENOMEM;
	snprintf(text, size, "%s%c%s%c%s", rule, 0, what, 0, subject);
	said = lind_call(SYS_denied, by, (struct lind_arg){ client, self }, (struct lind_arg){ nr, self },
	    (struct lind_arg){ (uint64_t)error, self }, lind_mine(text), (struct lind_arg){ size, self },
	    (struct lind_arg){ flags, self });
	free(text);
	return said;
}

int lind_denied(uint64_t client, uint32_t nr, int error, const char *rule, const char *what, const char *subject)
{
	return say(lind_self(), client, nr, error, rule, what, subject, 0) == 0;
}

int lind_ask(uint64_t client, uint32_t nr, int error, const char *rule, const char *what, const char *subject)
{
	/* For the client, whose signals end the wait. */
	int64_t said = say(client, client, nr, error, rule, what, subject, MAY_WAIT);

	return said == 1 ? LIND_ALLOWED : said == 0 ? LIND_TOLD : said == -EINTR ? LIND_INTERRUPTED : LIND_UNHEARD;
}
