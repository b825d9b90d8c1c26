/* A grate whose answers have data, given in every way that there is: what arrives is checked by
 * answer.c. */
#include <lind/raw.h>
#include <string.h>
#include <time.h>

static _Thread_local char text[8192];
static _Thread_local int32_t lock;

static struct lind_answer *raw(const struct lind_call *c)
{
	return (struct lind_answer *)(uintptr_t)(c + 1);
}

/* read(kind, to, length): `kind` says how. */
static int64_t on_read(const struct lind_call *c)
{
	size_t length = (size_t)c->args[2].value;
	struct lind_call copy = *c;
	int64_t now;

	memset(text, (int)c->args[0].value + 'a', 4096);
	switch ((uint32_t)c->args[0].value) {
	case 0:
		return lind_answer(c, 100, c->args[1], text, length);
	case 1:  /* not the engine's own */
		return lind_answer(&copy, 101, c->args[1], text, length);
	case 2:  /* no answer was prepared since the last one was given */
		return LIND_ANSWER;
	case 3:  /* from memory that is not there */
		return lind_answer(c, 103, c->args[1], (void *)16, length);
	case 4:  /* from beyond the grate's memory */
		lind_answer(c, 104, c->args[1], text, length);
		raw(c)->from = UINT64_MAX - 2;
		return LIND_ANSWER;
	case 5:
		lind_answer(c, 105, c->args[1], text, length);
		raw(c)->length = UINT64_MAX;
		return LIND_ANSWER;
	case 6: /* to a cage that is none of ours: the runner's first, which is ourselves, is told by its id, others are not */
		return lind_answer(c, 106, (struct lind_arg){ c->args[1].value, 1000000 }, text, length);
	case 7: /* to ourselves: no call in between has seen it */
		lind_answer(c, 107, lind_mine(text + 4096), text, 1);
		text[0] = '!';
		return LIND_ANSWER;
	case 8:
		return text[4096] == '!' ? 108 : -5;
	case 9: /* nothing to copy */
		return lind_answer(c, 109, c->args[1], text, 0);
	case 10:
		now = lind_read_timed(c->args[1], text, length);
		return now < 0 ? now
		    : now / 1000000000 - time(NULL) < 60 && time(NULL) - now / 1000000000 < 60 &&
			!memcmp(text, "time", 4)
		    ? 110
		    : 111;
	case 11: /* under a lock that the copy gives back */
		lock = 7;
		return lind_answer_from(c, c->args[1], text, length, &lock);
	case 12:
		return lock;
	case 13: /* the same without the engine */
		lock = 7;
		return lind_answer_from(&copy, c->args[1], text, length, &lock);
	case 14: /* a lock that is not there: the grate's own fault, and nobody else's */
		return lind_answer_from(c, c->args[1], text, length, (int32_t *)16);
	case 15:
		lock = 7;
		return lind_answer_from(c, c->args[1], (void *)16, length, &lock);
	default:
		return -9;
	}
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { SYS_read, on_read } };

	return lind_grate_run(on, 1, argc, argv);
}
