/*
 * Runs the verbs of lind-boot on the state of an overlay, on the host itself, where they can be
 * killed at each step:
 *
 *     verbs apply|diff|discard|export STATE LOWER [OPTION...] [-- PATH...]
 *
 * KILL_AT=N ends it before the Nth call that changes something on the disk; with FAIL_ON=NAME the
 * first that is to make or remove that fails.
 */
#include "layers.h"
#include "state_files.h"
#include "verb.h"
#include "print.h"
#include <errno.h>
#include <fcntl.h>
#include <lind/options.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long kill_at;
static const char *fail_on;

void lind_log(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void lind_die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(125);
}

int lind_open_file(const char *value, const char *ending, int flags, unsigned mode)
{
	char path[4096];

	snprintf(path, sizeof path, "%s%s", value, ending ? ending : "");
	return open(path, flags | O_CLOEXEC, mode);
}

const char *lind_file_name(const char *value)
{
	return value;
}

const char *lind_path_inside(const char *value)
{
	return value;
}

int verb_failed(const struct store *store, int error)
{
	lind_log("%s", *store_problem(store) ? store_problem(store) : strerror(-error));
	return 125;
}

/* Whether a step is not to be taken. */
static int refuses(const char *name)
{
	if (kill_at && !--kill_at)
		raise(SIGKILL);
	if (!fail_on || strcmp(name, fail_on))
		return 0;
	fail_on = NULL;
	errno = EACCES;
	return 1;
}

int __real_renameat(int from_at, const char *from, int to_at, const char *to);
int __real_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __real_mkdirat(int at, const char *name, mode_t mode);
int __real_unlinkat(int at, const char *name, int flags);
int __real_fdatasync(int fd);

int __wrap_renameat(int from_at, const char *from, int to_at, const char *to)
{
	return refuses(to) ? -1 : __real_renameat(from_at, from, to_at, to);
}

/* Nothing else is called by its number. */
long __wrap_syscall(long number, int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	return number != SYS_renameat2 || refuses(to) ? -1 : renameat2(from_at, from, to_at, to, flags);
}

int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
	return refuses(to) ? -1 : __real_linkat(from_at, from, to_at, to, flags);
}

int __wrap_mkdirat(int at, const char *name, mode_t mode)
{
	return refuses(name) ? -1 : __real_mkdirat(at, name, mode);
}

int __wrap_unlinkat(int at, const char *name, int flags)
{
	return refuses(name) ? -1 : __real_unlinkat(at, name, flags);
}

int __wrap_fdatasync(int fd)
{
	return refuses("") ? -1 : __real_fdatasync(fd);
}

static int act(const char *name, struct store *store, const struct verb_options *options)
{
	static const struct {
		const char *name;
		int (*act)(struct store *store, const struct verb_options *options);
		bool whole;
	} verbs[] = { { "apply", verb_apply, false }, { "diff", verb_diff, true }, { "discard", verb_discard, true },
		{ "export", verb_export, true }, { "log", verb_log, false }, { "ls", verb_ls, false } };

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		if (strcmp(verbs[i].name, name))
			continue;
		if (!verbs[i].whole || !store_is_applying(store))
			return verbs[i].act(store, options);
		lind_log("an apply was interrupted");
		return 125;
	}
	lind_die("no verb '%s'", name);
}

int main(int argc, char **argv)
{
	struct verb_options options = { .lower = argc > 3 ? argv[3] : NULL };
	struct store *store;
	struct state_files files;
	int at = 4, status;

	if (argc < 4)
		lind_die("usage: verbs VERB STATE LOWER [OPTION...] [-- PATH...]");
	for (; at < argc && strcmp(argv[at], "--"); at++) {
		options.force |= !strcmp(argv[at], "--force");
		options.dry_run |= !strcmp(argv[at], "--dry-run");
		options.patch |= !strcmp(argv[at], "--patch");
		options.stat |= !strcmp(argv[at], "--stat");
		options.json |= !strcmp(argv[at], "--json");
		options.overlayfs |= !strcmp(argv[at], "--overlayfs");
		if (!strncmp(argv[at], "--to=", 5))
			options.to = argv[at] + 5;
	}
	options.words = argv + at + (at < argc);
	options.words_count = argc - at - (at < argc);
	if (state_files_open(argv[2], false, &files))
		lind_die("%s: no state", argv[2]);
	if (store_open(&store, files.db, files.wal, files.data, NULL, NULL)) {
		lind_log("%s", store_problem(store));
		store_close(store);
		return 125;
	}
	kill_at = getenv("KILL_AT") ? atol(getenv("KILL_AT")) : 0;
	fail_on = getenv("FAIL_ON");
	status = act(argv[1], store, &options);
	return store_close(store) && !status ? 125 : status;
}
