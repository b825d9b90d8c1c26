/* The verifier as a native program: verifier LOG [HEAD [KEY [copy]]], and `-` or an empty KEY for none. */
#include <string.h>
#include "witness.h"

int main(int argc, char **argv)
{
	const char *head = argc > 2 && strcmp(argv[2], "-") ? argv[2] : NULL;

	return argc < 2 ? 3 : verify(argv[1], head, argc > 4, argc > 3 && *argv[3] ? argv[3] : NULL, false);
}
