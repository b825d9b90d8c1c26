/* The imfs grate: options. */
#include <stdlib.h>
#include "../lib/memfs/calls.h"
#include "host.h"

#define DEFAULT_LIMIT (2ull << 30)
#define PASSES        32

#define HANDLED(name, handle) LIND_HANDLE(answers, name, handle);
IMFS_CALLS(HANDLED)

static const char *prefix = "/";
static uint64_t limit = DEFAULT_LIMIT;
static const char *passes[PASSES] = { "dev", "proc", "sys" };
static size_t pass_count;
static bool passes_given;

static const char *set_prefix(const char *value)
{
	prefix = value;
	for (const char *at = value; *at; at++)
		if (*at == '/') {
			const char *name = at + 1;
			size_t length = strcspn(name, "/");

			if ((!length && (at != value || *name)) || (length == 1 && *name == '.') ||
			    (length == 2 && !strncmp(name, "..", 2)))
				return "must be an absolute path without . and ..";
		}
	return *value == '/' ? NULL : "must be an absolute path without . and ..";
}

static const char *set_limit(const char *value)
{
	return lind_number(value, &limit);
}

static const char *add_pass(const char *value)
{
	while (*value == '/')
		value++;
	if (!*value || strchr(value, '/'))
		return "must be one name in the root of the filesystem";
	if (pass_count == PASSES)
		return "too many of them";
	passes_given = true;
	passes[pass_count++] = value;
	return NULL;
}

/* A name that leads outside again. */
static void make_pass(const char *name)
{
	struct imfs_process us = { .umask = 022 };
	struct imfs_at at;
	struct imfs_node *n;

	if (imfs_walk(&fs, &us, fs.root, NULL, name, IMFS_NOFOLLOW, &at) ||
	    imfs_create(&fs, &us, &at, S_IFDIR | 0755, &n))
		lind_die("--pass %s: cannot be made", name);
	n->outside = true;
}

/* A whole filesystem has the directory that programs expect to find. */
static void make_tmp(void)
{
	struct imfs_process us = { 0 };
	struct imfs_at at;

	if (imfs_walk(&fs, &us, fs.root, NULL, "tmp", IMFS_NOFOLLOW, &at) || imfs_mkdir(&fs, &us, &at, 01777))
		lind_die("/tmp cannot be made");
}

void first_ended(void)
{
	dump_all();
}

LIND_OPTION("p", "prefix", "value");
LIND_OPTION("s", "size", "bytes");
LIND_OPTION("-", "preload", "reads=");
LIND_OPTION("-", "dump", "=writes");
LIND_OPTION("-", "pass", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'p', "prefix", "PATH", "put the filesystem at PATH (default /); all other paths are passed on",
		    set_prefix },
		{ 's', "size", "SIZE", "limit its contents (default 2G)", set_limit },
		{ 0, "preload", "HOST=PATH", "copy a file or tree of the outside to PATH before the program starts",
		    preload },
		{ 0, "dump", "PATH=HOST", "copy PATH to the outside when the program has ended", dump_later },
		{ 0, "pass", "NAME", "leave a name in its root outside (default, for prefix /: dev, proc, sys)",
		    add_pass },
	};
	struct imfs_cred root = { 0 };

	lind_options(options, sizeof options / sizeof *options, "Keeps files in memory.", &argc, &argv);
	imfs_sync_init();
	imfs_wake = lind_wake;
	if (imfs_init(&fs, prefix, limit, &root))
		lind_die("--prefix %s: too long, or no memory", prefix);
	fs.root->mode = S_IFDIR | 0777 | S_ISVTX;
	if (!fs.prefix[0])
		make_tmp();
	if (!passes_given && !fs.prefix[0])
		pass_count = 3;
	for (size_t i = 0; i < pass_count; i++)
		make_pass(passes[i]);
	holder_init();
	fifo_init();
	watchers_init();
	backing_init();
	if (!lind_explains())
		preload_all();
	lind_grate_lifecycle(&lifecycle);
	lind_starts_by(start_first);
	return lind_grate_main(argc, argv);
}
