/* The overlay grate: options, the start and the end. */
#include "../../lib/memfs/calls.h"
#include "../state/layers.h"
#include "below.h"
#include "cache.h"
#include "flush.h"
#include "list.h"
#include "log.h"
#include "lower.h"
#include "nodes.h"
#include "others.h"
#include "saved.h"
#include "turns.h"
#include "../state/state_files.h"
#include "../verbs/verb.h"
#include "../verbs/tree.h"
#include <lind/text.h>

#define OWN_FAILURE 125 /* the status that says so, if the program's says nothing */
#define MEMORY      (3ull << 30) /* of the grate's four */

static int64_t on_sync_all(const struct lind_call *c)
{
	/* sync(2) cannot fail. */
	flush_all(true);
	return lind_forward(c);
}

#define HANDLED(name, handle) LIND_HANDLE(answers, name, handle);
IMFS_CALLS(HANDLED)
HANDLED(sync, on_sync_all)

static const char *lower, *prefix, *upper, *head, *called, *shown_as;

/* Names may begin with a dot. */
static bool is_plain(const char *path)
{
	while (*path == '/') {
		size_t length = strcspn(++path, "/");

		if ((!length && *path) || (length == 1 && *path == '.') || (length == 2 && !strncmp(path, "..", 2)))
			return false;
		path += length;
	}
	return !*path;
}

static const char *set_path(const char **path, const char *value)
{
	*path = value;
	return *value == '/' && is_plain(value) ? NULL : "must be an absolute path without . and ..";
}

static const char *set_lower(const char *value)
{
	return set_path(&lower, value);
}

static const char *set_prefix(const char *value)
{
	return set_path(&prefix, value);
}

LIND_KEEPS(set_upper, upper)

static const char *set_head(const char *value)
{
	head = value;
	return *value ? NULL : "must be a name";
}

LIND_KEEPS(set_called, called)
LIND_KEEPS(set_shown_as, shown_as)

static const char *set_cache(const char *value)
{
	char *end;
	unsigned long long mebibytes = strtoull(value, &end, 10);

	if (end == value || *end || *value == '-' || !mebibytes || mebibytes > MEMORY >> 21)
		return "must be a number of mebibytes, at most 1536";
	cache_limit = mebibytes << 20;
	return NULL;
}

/* As many as a container has mounts, and more. */
#define PASSES 1024

static const char **passes;
static size_t pass_count;

static const char *add_pass(const char *value)
{
	if (pass_count == PASSES)
		return "too many of them";
	if (!(passes = realloc(passes, (pass_count + 1) * sizeof *passes)))
		lind_die("out of memory");
	return set_path(&passes[pass_count++], value);
}

/* An overlay of everything leaves out what the kernel serves itself. */
static void begin_passes(void)
{
	static const char *const own[] = { "/dev", "/proc", "/sys" };

	for (size_t i = 0; !fs.prefix[0] && i < sizeof own / sizeof *own; i++)
		if (imfs_pass_add(&fs, own[i]))
			lind_die("out of memory");
	for (size_t i = 0; i < pass_count; i++)
		switch (imfs_pass_add(&fs, passes[i])) {
		case 0:
			break;
		case -EINVAL:
			lind_die("--pass %s: must be a path below %s", passes[i], prefix);
		default:
			lind_die("out of memory");
		}
}

static const char *state_name(void)
{
	return shown_as ? shown_as : lind_file_name(upper);
}

static struct state_files state_files;

static int open_again(const struct state_files *files)
{
	int r = store_open(&store, files->db, files->wal, files->data, called ? called : lower, head);

	if (!r)
		return 0;
	store_close(store);
	store = NULL;
	return r;
}

static void open_store(void)
{
	int r = state_files_open(upper, true, &state_files);

	if (r)
		lind_die("--upper %s: %s", state_name(),
		    r == -ENOTEMPTY ? "not the state of an overlay, but a directory with other files" : strerror(-r));
	r = store_open(&store, state_files.db, state_files.wal, state_files.data, called ? called : lower, head);
	if (r == -EXDEV)
		lind_die("--upper %s: belongs to another lower directory", state_name());
	if (r == -EBUSY)
		lind_die("--upper %s: another run has it open", state_name());
	if (r)
		lind_die("--upper %s: %s", state_name(),
		    store && store_problem(store) ? store_problem(store) : strerror(-r));
	if (store_is_applying(store))
		lind_die("--upper %s: an apply was interrupted; lind-boot apply finishes it", state_name());
	fs.next_ino = store_next_ino(store);
}

/* Takes the attributes of the root from the lower directory or from the state. */
static void know_root(void)
{
	struct imfs_under *u = fs.root->under;
	struct store_node row;
	struct statx st;
	int r;

	if (lower_stat("", &st))
		lind_die("--lower %s: %s", lower, strerror(errno));
	node_renumber(fs.root, st.stx_ino);
	if (store && store_lower_is(store, st.stx_ino))
		lind_die("--upper %s: %s", state_name(), store_problem(store));
	if (store && store_get(store, ROOT_INO, &row) == 1) {
		if (!S_ISDIR(row.mode))
			lind_die("--upper %s: the state is damaged: it describes the directory itself as a file",
			    state_name());
		node_from_row(fs.root, &row);
		return;
	}
	node_shows(fs.root, strdup(""));
	u->xattrs_known = false;
	fs.root->unlisted = true;
	if (!u->origin || (r = know_node(&fs, fs.root)))
		lind_die("--lower %s: %s", lower, u->origin ? strerror(-r) : "no memory");
}

static struct lind_lifecycle lifecycle_here;

static void exec_client(void *client, uint64_t cage)
{
	imfs_write_lock();
	log_exec(cage);
	imfs_write_unlock();
	lifecycle.exec(client, cage);
}

/* As many as `diff` will show: what differs by its times alone is in the state too. */
static int64_t count_changes(void)
{
	static struct verb_list list;
	const struct verb_options options = { .lower = lower };
	int64_t rows = store_changes(store);

	return rows <= 0 || verb_list(store, &options, &list) ? rows : (int64_t)list.changes_count;
}

/* At the end: how many changes there are, for a user who named the state on the command line. */
static void tell_changes(void)
{
	int64_t count = shown_as ? count_changes() : 0;

	if (count > 0)
		lind_log("%lld %s changed: lind-boot diff %s", (long long)count, count == 1 ? "file" : "files",
		    lind_shell_word(shown_as));
}

static bool lost; /* something of what was changed */

void first_ended(void)
{
	if (!store)
		return;
	lost = flush_all(true);
	imfs_write_lock();
	store_enter();
	tell_changes();
	if (store_close(store)) {
		lind_log("cannot close the state in order");
		lost = true;
	}
	store = NULL;
	store_leave();
	imfs_write_unlock();
}

static void begin(void)
{
	struct imfs_cred root = { 0 };
	int r = lower_init(lower);

	if (r)
		lind_die("--lower %s: %s", lower, strerror(-r));
	imfs_below = &overlay_below;
	if (imfs_init(&fs, prefix, MEMORY, &root))
		lind_die("--prefix %s: too long, or no memory", prefix);
	begin_passes();
	fs.next_ino = STORE_FIRST_INO;
	if (upper)
		open_store();
	others_begin();
	know_root();
	if (store && flush_begin())
		lind_die("cannot start the thread that saves changes");
	if (store && turns_begin(&state_files, open_again, know_root))
		lind_die("cannot start the thread that gives the state away");
}

LIND_OPTION("l", "lower", "value");
LIND_OPTION("p", "prefix", "value");
LIND_OPTION("-", "pass", "value");
LIND_OPTION("u", "upper", "state,-wal");
LIND_OPTION("-", "head", "value");
LIND_OPTION("-", "cache", "value");
LIND_OPTION("-", "called", "value");
LIND_OPTION("-", "shown-as", "value");
LIND_OPTION("-", "requests", "reads");
LIND_OPTION("-", "answers", "writes");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'l', "lower", "DIR", "show the files of DIR, which is never written to", set_lower },
		{ 'p', "prefix", "PATH", "show the overlay at PATH (default: at the lower directory)", set_prefix },
		{ 0, "pass", "PATH",
		    "leave PATH and what is below it to the kernel, as mounts are; may be repeated (of / always: /dev, /proc, /sys)",
		    add_pass },
		{ 'u', "upper", "STATE",
		    "keep changes in STATE: a file, or with a slash at its end a directory; without it changes are lost at the end",
		    set_upper },
		{ 0, "head", "NAME", "work on this head of the state (default main)", set_head },
		{ 0, "cache", "MIB", "keep so many mebibytes of files in memory (default 512)", set_cache },
		{ 0, "called", "DIR",
		    "record DIR in the state as the name of the lower directory (default: as --lower)", set_called },
		{ 0, "shown-as", "NAME", "call the state NAME in messages", set_shown_as },
		{ 0, "requests", "FILE", "give the state away when a line in FILE asks for it", set_requests },
		{ 0, "answers", "FILE", "answer these lines in FILE", set_answers },
	};

	int status;

	if (argc > 1 && !strncmp(argv[1], "--verb", 6))
		return verb_main(argc, argv);
	lind_options(options, sizeof options / sizeof *options,
	    "Keeps the changes of clients to a directory in a state; the directory is never written to.", &argc, &argv);
	if (!lower)
		lind_die("--lower must be given");
	prefix = prefix ? prefix : lower;
	imfs_sync_init();
	imfs_wake = lind_wake;
	if (!lind_explains())
		begin();
	holder_init();
	fifo_init();
	watchers_init();
	backing_init();
	lifecycle_here = lifecycle;
	lifecycle_here.exec = exec_client;
	lind_grate_lifecycle(&lifecycle_here);
	lind_starts_by(start_first);
	status = lind_grate_main(argc, argv);
	return status || !lost ? status : OWN_FAILURE;
}
