/* Limits: their names, what is used of them, and what happens at the end of one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "limits.h"

const char *const what_names[WHATS] = {
	"cpu",
	"wall",
	"memory",
	"cages",
	"threads",
	"files",
	"read",
	"read.file",
	"read.network",
	"read.pipe",
	"write",
	"write.file",
	"write.network",
	"write.pipe",
};

uint64_t limits[SCOPES][WHATS] = { { [0 ... WHATS - 1] = UNLIMITED }, { [0 ... WHATS - 1] = UNLIMITED } };
/* Where limits are read to: later ones beside those that apply. */
static uint64_t later[SCOPES][WHATS], (*reading)[WHATS] = limits;
static uint64_t own_use[2 * WHATS];
uint64_t *tree_used = own_use, *tree_peak = own_use + WHATS;
struct rate tree_rates[RATES];
uint64_t each_rates[RATES];

/* The limits of all that were reported. */
static bool reported[WHATS];

/* By what, if a caller chose one; else by `general`. */
static struct {
	bool set;
	enum action action;
	int error;
} chosen[WHATS], general;

static const int errors[WHATS] = {
	[MEMORY] = ENOMEM,
	[CAGES] = EAGAIN,
	[THREADS] = EAGAIN,
	[FILES] = EMFILE,
	[READ] = EIO,
	[READ_FILE] = EIO,
	[READ_NETWORK] = EIO,
	[READ_PIPE] = EIO,
	[WRITE] = ENOSPC,
	[WRITE_FILE] = ENOSPC,
	[WRITE_NETWORK] = ENOSPC,
	[WRITE_PIPE] = ENOSPC,
};

static bool is_time(enum what what)
{
	return what == CPU || what == WALL;
}

static bool is_bytes(enum what what)
{
	return what == MEMORY || what >= READ;
}

static int by_name(const char *name, size_t length)
{
	for (int i = 0; i < WHATS; i++)
		if (strlen(what_names[i]) == length && !strncmp(what_names[i], name, length))
			return i;
	return -1;
}

static const char *unknown = "no such limit; there are cpu, wall, memory, cages, threads, files, read and write, "
			     "and of these two .file, .network and .pipe";

bool limit_is_time(const char *name)
{
	int what = by_name(name, strlen(name));

	return what >= 0 && is_time((enum what)what);
}

bool limit_is_bytes(const char *name)
{
	int what = by_name(name, strlen(name));

	return what >= 0 && is_bytes((enum what)what);
}

const char *set_limit(enum scope scope, const char *name, const char *amount)
{
	int what = by_name(name, strlen(name));

	if (what < 0)
		return unknown;
	if (scope == EACH && what == CAGES)
		return "cages can be limited only for all cages together";
	return lind_number(amount, &reading[scope][what]);
}

const char *limits_begin(void)
{
	for (unsigned scope = 0; scope < SCOPES; scope++)
		for (unsigned what = 0; what < WHATS; what++)
			later[scope][what] = UNLIMITED;
	reading = later;
	return NULL;
}

const char *limits_settle(bool applies)
{
	static char wrong[120];

	for (unsigned what = 0; applies && what < WHATS; what++)
		for (unsigned scope = 0; scope < SCOPES; scope++)
			if ((later[scope][what] == UNLIMITED) != (limits[scope][what] == UNLIMITED)) {
				snprintf(wrong, sizeof wrong,
				    "there is no limit `%s` from the start, so its use is not counted",
				    what_names[what]);
				return wrong;
			}
	for (unsigned what = 0; applies && what < WHATS; what++) {
		for (unsigned scope = 0; scope < SCOPES; scope++)
			__atomic_store_n(&limits[scope][what], later[scope][what], __ATOMIC_SEQ_CST);
		__atomic_store_n(&reported[what], false, __ATOMIC_RELAXED);
	}
	watch_soon();
	return NULL;
}

const char *set_rate(enum scope scope, const char *name, const char *amount)
{
	int what = by_name(name, strlen(name));
	const char *wrong;
	uint64_t n = 0;

	if (what < 0)
		return unknown;
	if (what < RATES_FROM)
		return "only bytes read and written have a rate";
	if ((wrong = lind_number(amount, &n)))
		return wrong;
	if (!n || n > 1ull << 40)
		return "must be from 1 byte to 1T a second";
	if (scope == TREE)
		tree_rates[what - RATES_FROM].per_second = n;
	else
		each_rates[what - RATES_FROM] = n;
	return NULL;
}

static const char *set_error(const char *name, int *error)
{
	*error = lind_errno_named(name);
	return *error ? NULL : "no such errno";
}

const char *set_action(const char *value)
{
	const char *equals = strchr(value, '='), *action = equals ? equals + 1 : value;
	int what = equals ? by_name(value, (size_t)(equals - value)) : -1, error = 0;
	enum action a;

	if (equals && what < 0)
		return unknown;
	if (!strcmp(action, "kill"))
		a = KILL;
	else if (!strcmp(action, "stop"))
		a = STOP;
	else if (!strncmp(action, "errno:", 6) && !(what >= 0 && is_time((enum what)what))) {
		const char *wrong = set_error(action + 6, &error);

		if (wrong)
			return wrong;
		a = FAIL;
	} else
		return "must be kill, stop or errno:NAME (not errno for time)";
	if (what >= 0)
		chosen[what].set = true, chosen[what].action = a, chosen[what].error = error;
	else
		general.set = true, general.action = a, general.error = error;
	return NULL;
}

enum action action_on(enum what what)
{
	if (chosen[what].set)
		return chosen[what].action;
	if (general.set && !(is_time(what) && general.action == FAIL))
		return general.action;
	return is_time(what) ? KILL : FAIL;
}

static int error_on(enum what what)
{
	if (chosen[what].set && chosen[what].error)
		return chosen[what].error;
	return general.error ? general.error : errors[what];
}

bool limited(enum what what)
{
	return limits[TREE][what] != UNLIMITED || limits[EACH][what] != UNLIMITED;
}

bool counted(enum what what)
{
	return limited(what) || wants_report;
}

bool paced(enum what what)
{
	return what >= RATES_FROM && (tree_rates[what - RATES_FROM].per_second || each_rates[what - RATES_FROM]);
}

bool any_limit(void)
{
	for (unsigned what = 0; what < WHATS; what++)
		if (limited((enum what)what) || paced((enum what)what))
			return true;
	return false;
}

/* Somebody reads the file at any time: first what is used, then the most that was. */
const char *set_use(const char *path)
{
	int fd = lind_open_file(path, NULL, O_RDWR | O_CREAT, 0644);
	void *shared;

	if (fd < 0)
		return strerror(errno);
	if (lind_explains()) {
		close(fd);
		return NULL;
	}
	if (ftruncate(fd, sizeof own_use))
		return strerror(errno);
	shared = mmap(NULL, sizeof own_use, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		return strerror(errno);
	tree_used = shared;
	tree_peak = tree_used + WHATS;
	learns = true;
	return NULL;
}

static uint64_t *used_of(enum scope scope, struct client *c, enum what what)
{
	return scope == TREE ? &tree_used[what] : &c->used[what];
}

void note_peak(enum what what)
{
	uint64_t used = __atomic_load_n(&tree_used[what], __ATOMIC_RELAXED),
		 most = __atomic_load_n(&tree_peak[what], __ATOMIC_RELAXED);

	/* An amount that is given back at this moment may have made it less than nothing. */
	while ((int64_t)used > (int64_t)most &&
	    !__atomic_compare_exchange_n(&tree_peak[what], &most, used, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

uint64_t grab(enum scope scope, struct client *c, enum what what, uint64_t n)
{
	uint64_t *used = used_of(scope, c, what), max = limits[scope][what];
	uint64_t before = __atomic_load_n(used, __ATOMIC_RELAXED), got;

	do {
		if (before >= max)
			return 0;
		got = n < max - before ? n : max - before;
	} while (!__atomic_compare_exchange_n(used, &before, before + got, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (learns && scope == TREE)
		note_peak(what);
	return got;
}

void drop(enum scope scope, struct client *c, enum what what, uint64_t n)
{
	__atomic_fetch_sub(used_of(scope, c, what), n, __ATOMIC_RELAXED);
}

bool reserve(struct client *c, enum what what, uint64_t n, enum scope *scope)
{
	for (*scope = TREE; *scope < SCOPES; (*scope)++) {
		uint64_t got = n ? grab(*scope, c, what, n) : 0;

		if (got == n)
			continue;
		drop(*scope, c, what, got);
		if (*scope == EACH)
			drop(TREE, c, what, n);
		return false;
	}
	return true;
}

void give_back(struct client *c, enum what what, uint64_t n)
{
	drop(TREE, c, what, n);
	drop(EACH, c, what, n);
}

const char *amount_text(enum what what, uint64_t n, char *text, size_t size)
{
	if (is_time(what))
		snprintf(
		    text, size, "%llu.%03us", (unsigned long long)(n / 1000000000), (unsigned)(n / 1000000 % 1000));
	else
		snprintf(text, size, "%llu%s", (unsigned long long)n, is_bytes(what) ? " bytes" : "");
	return text;
}

/* The client that has come to a limit: copied, since it may end. */
struct culprit {
	bool found;
	uint64_t cage;
	char name[sizeof((struct client *)0)->name];
};

static void take_program(struct client *c, void *culprit)
{
	struct culprit *to = culprit;

	if (to->found || is_of_line(c))
		return;
	to->found = true;
	to->cage = c->cage;
	memcpy(to->name, c->name, sizeof to->name);
}

/* Of a limit of all, a program is told and not a grate that happened to come to it. */
static struct culprit culprit_of(struct client *c, enum scope scope)
{
	struct culprit program = { 0 };

	take_program(c, &program);
	if (!program.found && scope == TREE)
		each_client(take_program, &program);
	if (!program.found) {
		program.cage = c->cage;
		memcpy(program.name, c->name, sizeof program.name);
	}
	return program;
}

/* One line for each limit of all, or for each client and limit of its own: a client that goes on
 * is not to fill the log. */
static void tell(
    struct client *c, enum scope scope, enum what what, uint64_t wanted, const char *by, const char *then, int error)
{
	char used[40], max[40], more[40], wish[64] = "", rule[64], amounts[160];
	/* First of all: once it is told, another client's hit may end programs. */
	uint64_t in_use = __atomic_load_n(used_of(scope, c, what), __ATOMIC_SEQ_CST);
	struct culprit who;

	if (__atomic_exchange_n(&c->reported[what], true, __ATOMIC_SEQ_CST) ||
	    (scope == TREE && __atomic_exchange_n(&reported[what], true, __ATOMIC_SEQ_CST)))
		return;
	who = culprit_of(c, scope);
	if (wanted)
		snprintf(wish, sizeof wish, ", %s more wanted", amount_text(what, wanted, more, sizeof more));
	amount_text(what, in_use, used, sizeof used);
	amount_text(what, limits[scope][what], max, sizeof max);
	snprintf(rule, sizeof rule, "limit %s%s", scope == EACH ? "each " : "", what_names[what]);
	snprintf(amounts, sizeof amounts, "%s of %s used%s", used, max, wish);
	if (!lind_denied(who.cage, 0, error, rule, amounts, what_names[what]))
		lind_log("%s: %s, by %llu (%s)%s%s: %s", rule, amounts, (unsigned long long)who.cage, who.name,
		    *by ? " in " : "", by, then);
}

int64_t hit(struct client *c, enum scope scope, enum what what, uint64_t wanted, const char *by)
{
	enum action action = action_on(what);
	int error = error_on(what);

	tell(c, scope, what, wanted, by,
	    action == KILL       ? "all are killed"
		: action == STOP ? "all are stopped"
				 : lind_errno_name(error),
	    action == FAIL ? error : 0);
	if (action == KILL) {
		__atomic_store_n(&ending, true, __ATOMIC_SEQ_CST);
		end_programs(now());
		watch_soon();
	} else if (action == STOP)
		signal_tree(SIGSTOP);
	return error ? -error : -EAGAIN;
}
