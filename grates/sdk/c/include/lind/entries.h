/* Directory entries as the two calls that read them have them. */
#ifndef LIND_ENTRIES_H
#define LIND_ENTRIES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Makes entries of getdents64 those of getdents, which have the type in their last byte. */
static inline void lind_entries_to_old(void *list, size_t bytes)
{
	enum { LENGTH = 16, TYPE = 18 };
	char *entry = list;
	uint16_t length;

	for (; bytes > TYPE; entry += length, bytes -= length) {
		char type = entry[TYPE];

		memcpy(&length, entry + LENGTH, sizeof length);
		if (length <= TYPE || length > bytes)
			return;
		memmove(entry + TYPE, entry + TYPE + 1, length - TYPE - 1u);
		entry[length - 1] = type;
	}
}

#endif
