/* The texts of a call: paths, and how what it writes begins. */
#include <string.h>
#include "replay.h"

#define BEGINNING 64

static size_t put(char *to, size_t used, size_t room, uint32_t length)
{
	if (room - used < length + 2u)
		return used;
	to[used] = (char)length;
	to[used + 1] = (char)(length >> 8);
	return used + 2 + length;
}

/* Each is its length in two bytes, then its bytes. */
size_t texts_of(const struct lind_call *c, const struct lind_syscall *row, char *to, size_t room)
{
	size_t used = 0;

	for (int i = 0; row && i < row->count; i++) {
		const struct lind_param *p = &row->args[i];
		struct lind_arg arg = c->args[i];

		if (!arg.value || room - used < PATH_ROOM + 2)
			continue;
		if (p->kind == LIND_PATH || p->kind == LIND_STR) {
			ssize_t length = lind_read_string(arg, to + used + 2, PATH_ROOM);

			if (length >= 0)
				used = put(to, used, room, (uint32_t)length);
		} else if (p->kind == LIND_IN && p->layout == LIND_LAYOUT_BYTES && i + 1 < row->count &&
		    row->args[i + 1].kind == LIND_LEN) {
			uint64_t length = c->args[i + 1].value;

			length = length < BEGINNING ? length : BEGINNING;
			if (length && !lind_read(arg, to + used + 2, (size_t)length))
				used = put(to, used, room, (uint32_t)length);
		}
	}
	return used;
}
