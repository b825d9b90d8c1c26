/* The first call in which two records differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <lind/text.h>
#include "replay.h"

static const char *texts_in(const struct record *r, size_t *length)
{
	uint32_t size = 0;

	if (r->bytes >= sizeof size)
		memcpy(&size, r + 1, sizeof size);
	*length = r->bytes >= sizeof size && size <= r->bytes - sizeof size ? size : 0;
	return (const char *)(r + 1) + sizeof size;
}

static void say(const char *whose, const struct record *r)
{
	char call[1024], result[64];
	const char *texts;
	size_t length;

	if (!r) {
		printf("  %s has no more calls\n", lind_shown(whose));
		return;
	}
	texts = texts_in(r, &length);
	if (r->nr == SYS_signalled)
		printf("  %s: call %llu: the handler of signal %u\n", lind_shown(whose), (unsigned long long)r->number,
		    (unsigned)(uint8_t)r->args[0]);
	else {
		show_call(call, sizeof call, r->nr, r->args, texts, length);
		show_result(result, sizeof result, r);
		printf("  %s: call %llu: %s = %s\n", lind_shown(whose), (unsigned long long)r->number, lind_shown(call),
		    result /* ours */);
	}
}

static bool equal(const struct record *a, const struct record *b)
{
	return a->nr == b->nr && a->result == b->result && a->bytes == b->bytes &&
	    !memcmp(a->args, b->args, sizeof a->args) && !memcmp(a + 1, b + 1, a->bytes);
}

/* Calls that are the same to the program until it looks at what they gave. */
static void say_bytes(const struct record *a, const struct record *b)
{
	const unsigned char *left = (const unsigned char *)(a + 1), *right = (const unsigned char *)(b + 1);
	uint32_t at = 0, least = a->bytes < b->bytes ? a->bytes : b->bytes;

	if (a->nr != b->nr || a->result != b->result || memcmp(a->args, b->args, sizeof a->args))
		return;
	while (at < least && left[at] == right[at])
		at++;
	if (at < least)
		printf("  the call gave other bytes: byte %u of the record is %#x and %#x\n", at, left[at], right[at]);
	else
		printf("  the call gave %u and %u bytes\n", a->bytes, b->bytes);
}

/* The numbers of the calls at which a cage's records differ first: of the first record, or of its
 * end. UINT64_MAX if they do not. */
static uint64_t difference(struct log *one, struct log *other, uint32_t cage, bool says, const char *name)
{
	struct client a = { .cage = cage, .next = read_first(one, cage) },
		      b = { .cage = cage, .next = read_first(other, cage) };
	const struct record *left, *right;
	uint64_t number = 0;

	for (;;) {
		left = read_next(one, &a);
		right = read_next(other, &b);
		if (!left && !right) {
			number = UINT64_MAX;
			break;
		}
		if (!left || !right || !equal(left, right))
			break;
		number = left->number;
		read_take(&a);
		read_take(&b);
	}
	if (says && (left || right)) {
		printf("the first difference is in cage %u:\n", cage);
		say("this record", left);
		say(name, right);
		if (left && right)
			say_bytes(left, right);
	}
	if (left || right)
		number = left ? left->number : number + 1;
	free(a.data);
	free(b.data);
	return number;
}

int compare(struct log *one, struct log *other, const char *name)
{
	uint64_t first = UINT64_MAX, at;
	uint32_t cage, found = 0;

	for (size_t place = 0; (cage = read_cage(one, place)); place++)
		if ((at = difference(one, other, cage, false, name)) < first) {
			first = at;
			found = cage;
		}
	if (first == UINT64_MAX) {
		printf("the records have the same calls\n");
		return 0;
	}
	difference(one, other, found, true, name);
	return 1;
}
