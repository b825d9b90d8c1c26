/* The handlers that LIND_ON and its like list, wherever in the program they stand. */
#include <lind/typed.h>
#include <stdlib.h>
#include "sdk.h"

/* The linker's names for the ends of the section that the lists are in; there are none without a
 * list. */
extern const struct lind_handler __start_lind_handlers[] __attribute__((weak));
extern const struct lind_handler __stop_lind_handlers[] __attribute__((weak));

static uint32_t *without;
static size_t without_count;

void lind_grate_without(uint32_t nr)
{
	uint32_t *more = realloc(without, (without_count + 1) * sizeof *more);

	if (!more)
		lind_die("out of memory");
	without = more;
	without[without_count++] = nr;
}

static int wanted(uint32_t nr)
{
	for (size_t i = 0; i < without_count; i++)
		if (without[i] == nr)
			return 0;
	return 1;
}

int lind_grate_main(int argc, char **argv)
{
	size_t listed = (size_t)(__stop_lind_handlers - __start_lind_handlers), count = 0;
	struct lind_handler *on = malloc((listed + 1) * sizeof *on);

	if (!on)
		lind_die("out of memory");
	for (size_t i = 0; i < listed; i++)
		if (wanted(__start_lind_handlers[i].nr))
			on[count++] = __start_lind_handlers[i];
	return lind_grate_run(on, count, argc, argv);
}
