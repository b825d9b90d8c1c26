/* The verifier as a native program: verifier LOG [HEAD [KEY [copy]]], and `-` or an empty KEY for
 * none. */
#include <fcntl.h>
#include <lind/options.h>
#include <string.h>
#include "witness.h"

/* Replacements of the SDK's functions, which need a cage. */
const char *lind_file_name(const char *value)
{
	return value;
}

FILE *lind_read_file(const char *value)
{
	return fopen(value, "r");
}

int lind_open_file(const char *value, const char *ending, int flags, unsigned mode)
{
	return ending ? -1 : open(value, flags, mode);
}

/* The printed records are made by sources that run in cages only. */
void show_records(const uint8_t *bytes, size_t size, uint64_t first)
{
	(void)bytes;
	(void)size;
	(void)first;
}

int main(int argc, char **argv)
{
	const char *head = argc > 2 && strcmp(argv[2], "-") ? argv[2] : NULL;

	return argc < 2 ? 3 : verify(argv[1], head, argc > 4, argc > 3 && *argv[3] ? argv[3] : NULL, false);
}
