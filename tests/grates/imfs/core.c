/* Tests the core of imfs where Linux cannot be the model: mount prefixes, the size limit, record
 * locks against a naive list. */
#include <stdio.h>
#include <stdlib.h>
#include "imfs_core.h"

static int failures;
static struct imfs fs;
static struct imfs_process us = { .cred = { .caps = IMFS_ALL_CAPS, .rcaps = IMFS_ALL_CAPS } };
static struct imfs_at at;

#define CHECK(x) ((x) ? (void)0 : (failures++, (void)printf("%s:%d: %s\n", __FILE__, __LINE__, #x)))

static int walk(struct imfs_node *start, const char *start_path, const char *path)
{
	return imfs_walk(&fs, &us, start, start_path, path, IMFS_FOLLOW, &at);
}

static struct imfs_node *make(const char *path, uint32_t mode, const char *target)
{
	struct imfs_node *n = NULL;

	CHECK(!imfs_walk(&fs, &us, fs.root, NULL, path, IMFS_NAME_ITSELF, &at));
	if (target) {
		CHECK(!imfs_symlink(&fs, &us, &at, target));
		return NULL;
	}
	CHECK(!imfs_create(&fs, &us, &at, mode, &n));
	return n;
}

/* Where a path leads: "+NODE" inside, "PATH" outside, "-ERRNO". */
static void leads(struct imfs_node *start, const char *start_path, const char *path, const struct imfs_node *node,
    const char *outside)
{
	int r = walk(start, start_path, path);

	if (r || at.outside != !!outside || (outside && strcmp(at.path, outside)) || (!outside && at.node != node)) {
		printf("%s from %s: %d, outside %d %s, node %p\n", path, start_path ? start_path : "inside", r,
		    at.outside, at.path, (void *)at.node);
		failures++;
	}
}

static void prefixes(void)
{
	struct imfs_node *d, *f;

	CHECK(!imfs_init(&fs, "/mnt/x/", UINT64_MAX, &us.cred));
	d = make("d", S_IFDIR | 0755, NULL);
	f = make("d/f", S_IFREG | 0644, NULL);
	make("out", 0, "../../etc");
	make("abs", 0, "/etc/passwd");
	make("home", 0, "/mnt/x/d");
	make("d/up", 0, "..");
	leads(NULL, NULL, "/mnt/x", fs.root, NULL);
	leads(NULL, NULL, "//mnt/./x//", fs.root, NULL);
	leads(NULL, NULL, "/mnt/x/d/f", f, NULL);
	leads(NULL, NULL, "/mnt/xy/d", NULL, "/mnt/xy/d");
	leads(NULL, NULL, "/mnt", NULL, "/mnt");
	leads(NULL, NULL, "/", NULL, "/");
	leads(NULL, NULL, "/a/../mnt/x/d", d, NULL);
	leads(NULL, "/mnt", "x/d", d, NULL);
	leads(NULL, "/", "mnt/x", fs.root, NULL);
	leads(NULL, "/mnt/y", "../x/d/f", f, NULL);
	leads(NULL, "/mnt/y", "z", NULL, "/mnt/y/z");
	leads(d, NULL, "f", f, NULL);
	leads(d, NULL, "../../b", NULL, "/mnt/b");
	leads(d, NULL, "../../../../..", NULL, "/");
	leads(d, NULL, "../../x/d", d, NULL);
	leads(d, NULL, "../out/hosts", NULL, "/etc/hosts");
	leads(d, NULL, "../abs", NULL, "/etc/passwd");
	leads(d, NULL, "../home/f", f, NULL);
	leads(d, NULL, "up/home/up/d/f", f, NULL);
	leads(NULL, NULL, "/mnt/x/none", NULL, NULL);
	CHECK(walk(NULL, NULL, "/mnt/x/none/f") == -ENOENT);
	CHECK(walk(NULL, NULL, "/mnt/x/d/f/g") == -ENOTDIR);
	make("loop", 0, "loop");
	CHECK(walk(NULL, NULL, "/mnt/x/loop") == -ELOOP);

	CHECK(!imfs_init(&fs, "/", UINT64_MAX, &us.cred));
	make("dev", S_IFDIR | 0755, NULL)->outside = true;
	d = make("d", S_IFDIR | 0755, NULL);
	make("d/null", 0, "/dev/null");
	leads(NULL, NULL, "/dev", NULL, "/dev");
	leads(NULL, NULL, "/dev/null", NULL, "/dev/null");
	leads(d, NULL, "null", NULL, "/dev/null");
	leads(NULL, NULL, "/dev/../d", d, NULL);
	leads(NULL, NULL, "/dev/fd/../../d/.", d, NULL);
	leads(NULL, NULL, "/../..", fs.root, NULL);
}

static int within(struct imfs_node *start, const char *start_path, uint32_t resolve, const char *path)
{
	return imfs_walk_within(&fs, &us, start, start_path, path, IMFS_FOLLOW, resolve, &at);
}

/* RESOLVE_* where the mount is not a whole system: the conformance test fs/openat2 has the rest. */
static void scopes(void)
{
	struct imfs_node *d, *f;

	CHECK(!imfs_init(&fs, "/mnt/x", UINT64_MAX, &us.cred));
	d = make("d", S_IFDIR | 0755, NULL);
	f = make("d/f", S_IFREG | 0644, NULL);
	make("out", 0, "/etc");
	make("up", 0, "..");
	CHECK(!within(NULL, "/mnt", IMFS_BENEATH, "x/d/f") && at.node == f);
	CHECK(!within(NULL, "/mnt", IMFS_BENEATH, "x/d/../../y/../x/d/f") && at.node == f);
	CHECK(within(NULL, "/mnt", IMFS_BENEATH, "../mnt/x/d/f") == -EXDEV);
	CHECK(within(NULL, "/mnt", IMFS_BENEATH, "x/up/../mnt/x/d/f") == -EXDEV);
	CHECK(within(NULL, "/", IMFS_BENEATH, "../mnt/x/d/f") == -EXDEV);
	CHECK(!within(NULL, "/", IMFS_BENEATH, "mnt/x/d/f") && at.node == f);
	CHECK(within(NULL, "/mnt", IMFS_BENEATH, "x/out/passwd") == -EXDEV);
	CHECK(!within(NULL, "/mnt", IMFS_IN_ROOT, "/../x/d/f") && at.node == f);
	CHECK(!within(NULL, "/mnt", IMFS_IN_ROOT, "x/out/passwd") && at.outside && !strcmp(at.path, "/mnt/etc/passwd"));
	CHECK(!within(NULL, "/", IMFS_IN_ROOT, "../../mnt/x/d/f") && at.node == f);
	CHECK(within(d, NULL, IMFS_BENEATH, "../d/f") == -EXDEV);
	CHECK(!within(d, NULL, IMFS_IN_ROOT, "../../../f") && at.node == f);
	CHECK(!within(fs.root, NULL, IMFS_IN_ROOT, "up/d/f") && at.node == f);
	CHECK(within(fs.root, NULL, IMFS_IN_ROOT, "out") == 0 && !at.outside && !at.node);
	CHECK(within(NULL, "/mnt", IMFS_NO_XDEV, "x/d/f") == -EXDEV);
	CHECK(within(d, NULL, IMFS_NO_XDEV, "/mnt/x/d/f") == -EXDEV);
	CHECK(within(fs.root, NULL, IMFS_NO_XDEV, "out") == -EXDEV);
	CHECK(within(fs.root, NULL, IMFS_NO_XDEV, "up/y") == -EXDEV);
	CHECK(!within(d, NULL, IMFS_NO_XDEV, "../d/f") && at.node == f);
	CHECK(within(fs.root, NULL, IMFS_NO_SYMLINKS, "up") == -ELOOP);
	CHECK(!within(d, NULL, IMFS_NO_SYMLINKS, "../d/f") && at.node == f);
}

static void limit(void)
{
	static char bytes[100000];
	struct imfs_file *f;
	uint64_t used;

	CHECK(!imfs_init(&fs, "", 1 << 20, &us.cred));
	used = fs.used;
	CHECK(!walk(fs.root, NULL, "f") && !imfs_open(&fs, &us, &at, O_CREAT | O_RDWR, 0600, &f));
	for (int i = 0; i < 10; i++)
		CHECK(imfs_pwrite(&fs, &us, f, bytes, sizeof bytes, i * (int64_t)sizeof bytes) == sizeof bytes);
	CHECK(imfs_pwrite(&fs, &us, f, bytes, sizeof bytes, 1000000) < (int64_t)sizeof bytes);
	CHECK(imfs_pwrite(&fs, &us, f, bytes, sizeof bytes, 1 << 20) == -ENOSPC);
	CHECK(imfs_pwrite(&fs, &us, f, bytes, 1, 0) == 1);
	CHECK(fs.used <= fs.limit);
	CHECK(imfs_fallocate(&fs, f, &us, 0, 0, 2 << 20) == -ENOSPC);
	CHECK(!imfs_truncate(&fs, f->node, &us, 0));
	CHECK(imfs_pwrite(&fs, &us, f, bytes, sizeof bytes, INT64_C(1) << 50) == sizeof bytes);
	CHECK(imfs_pread(&fs, f, bytes, 10, 1 << 30) == 10);
	imfs_file_drop(&fs, f);
	CHECK(!imfs_walk(&fs, &us, fs.root, NULL, "f", IMFS_NAME_ITSELF, &at) && !imfs_unlink(&fs, &us, &at));
	CHECK(fs.used == used && fs.nodes == 1);
}

/* Bytes 0..63, three owners: what each holds, read or write. */
static char held[3][64];

static bool allowed(int owner, int from, int to, bool write)
{
	for (int o = 0; o < 3; o++)
		for (int i = from; o != owner && i <= to; i++)
			if (held[o][i] == 'w' || (write && held[o][i]))
				return false;
	return true;
}

static void locks(unsigned seed)
{
	struct imfs_node n = { 0 };

	memset(held, 0, sizeof held);
	for (int step = 0; step < 20000 && !failures; step++) {
		int owner, from, to, kind;
		struct imfs_lock want = { 0 };

		seed = seed * 1103515245 + 12345;
		owner = (int)(seed >> 8) % 3;
		from = (int)(seed >> 12) % 64;
		to = from + (int)(seed >> 18) % (64 - from);
		kind = (int)(seed >> 28) % 3;
		want.owner = held[owner];
		want.start = from;
		want.last = to;
		want.write = kind == 1;
		if (kind < 2 && !allowed(owner, from, to, want.write)) {
			CHECK(imfs_lock(&n, &want, false) == -EAGAIN);
			continue;
		}
		CHECK(imfs_lock(&n, &want, kind == 2) == 0);
		memset(held[owner] + from, kind == 2 ? 0 : kind ? 'w' : 'r', (size_t)(to - from) + 1);
	}
	for (int o = 0; o < 3; o++)
		imfs_locks_drop(&n, held[o]);
	CHECK(!n.locks);
}

/* A file has room for 8192 locks; what makes none more is always possible. */
static void many_locks(void)
{
	struct imfs_node n = { 0 };
	struct imfs_lock want = { .owner = held, .write = true };

	for (int i = 0; i < 8192; i++) {
		want.start = i * 4;
		want.last = want.start + 2;
		CHECK(imfs_lock(&n, &want, false) == 0);
	}
	want.start = want.last = 8192 * 4;
	CHECK(imfs_lock(&n, &want, false) == -ENOLCK);
	want.start = want.last = 1;
	CHECK(imfs_lock(&n, &want, true) == -ENOLCK);
	want.last = 2;
	CHECK(imfs_lock(&n, &want, true) == 0);
	want.start = 0;
	want.last = 2;
	CHECK(imfs_lock(&n, &want, true) == 0);
	want.start = want.last = 8192 * 4;
	CHECK(imfs_lock(&n, &want, false) == 0);
	want.start = 0;
	CHECK(imfs_lock(&n, &want, false) == 0);
	CHECK(n.locks && !n.locks->next);
	imfs_locks_drop(&n, held);
}

int main(void)
{
	prefixes();
	scopes();
	limit();
	many_locks();
	for (unsigned seed = 1; seed < 20; seed++)
		locks(seed);
	return failures != 0;
}
