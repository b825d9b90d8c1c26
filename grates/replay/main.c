/* The replay grate: records what system calls give, and gives it again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "replay.h"

LIND_HANDLE(alters, any, NULL);
/* Not among any. */
LIND_HANDLE(observes, exit, NULL);
LIND_HANDLE(observes, exit_group, NULL);
LIND_HANDLE(alters, spawn, NULL);
LIND_HANDLE(observes, signalled, NULL);

static const char *recorded, *replayed, *compared, *again;
static uint64_t until = UINT64_MAX, beside;

static lind_handle_fn *choose(uint32_t nr)
{
	if (nr == SYS_spawn)
		return recorded ? on_record_exec : on_again_spawn;
	if (nr == SYS_signalled)
		return recorded ? on_signalled : NULL;
	if (nr == SYS_rt_sigreturn || (nr >= 1000 && nr < LIND_NUMBERS))
		return NULL;
	if (!recorded)
		return on_again;
	if (nr == SYS_execve || nr == SYS_execveat)
		return on_record_exec;
	return nr == SYS_exit || nr == SYS_exit_group ? on_record_last : on_record;
}

static const char *set_record(const char *value)
{
	const char *wrong = lind_explains() ? NULL : log_open(value);

	recorded = value;
	return wrong;
}

static const char *set_again(const char *value)
{
	again = value;
	return lind_explains() ? NULL : log_open(value);
}

static const char *set_until(const char *value)
{
	return lind_number(value, &until);
}

static const char *set_beside(const char *value)
{
	return lind_number(value, &beside);
}

LIND_KEEPS(set_replay, replayed)
LIND_KEEPS(set_diff, compared)

static struct log *opened(const char *value)
{
	const char *wrong;
	struct log *log = read_open(value, &wrong);

	if (!log)
		lind_die("%s: %s", lind_file_name(value), wrong);
	return log;
}

LIND_OPTION("-", "record", "updates");
LIND_OPTION("-", "replay", "reads");
LIND_OPTION("-", "diff", "reads");
LIND_OPTION("-", "again", "updates");
LIND_OPTION("-", "until", "value");
LIND_OPTION("-", "beside", "value");

int main(int argc, char **argv)
{
	static const struct lind_option list[] = {
		{ 0, "record", "FILE", "append what calls give to FILE, which `lind-boot record` has made",
		    set_record },
		{ 0, "replay", "FILE", "answer calls by the record FILE", set_replay },
		{ 0, "diff", "FILE", "print the first call in which the record differs from this one; run nothing",
		    set_diff },
		{ 0, "again", "FILE", "append what the replay did to FILE, which has a head", set_again },
		{ 0, "until", "CALL", "stop before the call with this number", set_until },
		{ 0, "beside", "COUNT", "so many of the following grates are not in the record", set_beside },
	};

	rows_begin();
	lind_options(
	    list, sizeof list / sizeof *list, "Records what system calls give, and gives it again.", &argc, &argv);
	if (!recorded == !replayed)
		lind_die("give it one record: --record FILE or --replay FILE");
	if (compared)
		return compare(opened(replayed), opened(compared), lind_file_name(compared));
	if (!lind_explains() && recorded)
		record_begin(argc, argv);
	else if (!lind_explains())
		again_begin(opened(replayed), (unsigned)beside, until, again);
	lind_grate_lifecycle(recorded ? record_lifecycle() : again_lifecycle());
	lind_grate_choose(choose);
	return lind_grate_main(argc, argv);
}
