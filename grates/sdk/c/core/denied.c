/* Telling whoever started the runner what was refused. */
#include <lind/raw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sdk.h"

int lind_denied(uint64_t client, uint32_t nr, int error, const char *rule, const char *what, const char *subject)
{
	static const size_t ends = 3;
	uint64_t self = lind_self();
	size_t size = strlen(rule) + strlen(what) + strlen(subject) + ends;
	char *text = malloc(size);
	int told;

	if (!text)
		return 0;
	snprintf(text, size, "%s%c%s%c%s", rule, 0, what, 0, subject);
	told = !lind_call(SYS_denied, self, (struct lind_arg){ client, self }, (struct lind_arg){ nr, self },
	    (struct lind_arg){ (uint64_t)error, self }, lind_mine(text), (struct lind_arg){ size, self },
	    (struct lind_arg){ 0, self });
	free(text);
	return told;
}
