/* The end of a verb that has failed. */
#include "failed.h"
#include <lind/options.h>
#include <string.h>

int verb_failed(const struct store *store, int error)
{
	const char *problem = store_problem(store);

	lind_log("%s", *problem ? problem : strerror(-error));
	return STRANGE;
}
