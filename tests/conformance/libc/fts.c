/* Walks: order, levels, links, what a program says about an entry. */
#include "check.h"
#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void walk(int options, char *said, const char *skip)
{
	char *paths[] = { "t", 0 };
	FTS *f = fts_open(paths, options | FTS_NOCHDIR, by_name);
	FTSENT *e;

	*said = 0;
	NEED(f);
	while ((e = fts_read(f))) {
		sprintf(said + strlen(said), "%s:%d:%d ", e->fts_path, e->fts_info, e->fts_level);
		if (skip && !strcmp(e->fts_name, skip) && e->fts_info == FTS_D)
			CHECK_EQ(fts_set(f, e, FTS_SKIP), 0);
	}
	CHECK_EQ(errno, 0);
	CHECK_EQ(fts_close(f), 0);
}

int main(void)
{
	char said[1000];

	mkdir("t", 0700);
	mkdir("t/d", 0700);
	mkdir("t/e", 0700);
	close(creat("t/d/f", 0600));
	CHECK_EQ(symlink("..", "t/d/up"), 0);
	CHECK_EQ(symlink("nowhere", "t/x"), 0);

	walk(FTS_PHYSICAL, said, 0);
	CHECK_STR(said, "t:1:0 t/d:1:1 t/d/f:8:2 t/d/up:12:2 t/d:6:1 t/e:1:1 t/e:6:1 t/x:12:1 t:6:0 ");
	walk(FTS_LOGICAL, said, 0);
	CHECK_STR(said, "t:1:0 t/d:1:1 t/d/f:8:2 t/d/up:2:2 t/d:6:1 t/e:1:1 t/e:6:1 t/x:13:1 t:6:0 ");
	walk(FTS_PHYSICAL, said, "d");
	CHECK_STR(said, "t:1:0 t/d:1:1 t/d:6:1 t/e:1:1 t/e:6:1 t/x:12:1 t:6:0 ");

	char *missing[] = { "t/nothing", "t/x", 0 };
	FTS *f = fts_open(missing, FTS_PHYSICAL | FTS_COMFOLLOW, 0);
	FTSENT *e = fts_read(f);
	CHECK_EQ(e->fts_info, FTS_NS);
	CHECK_EQ(e->fts_errno, ENOENT);
	CHECK_STR(e->fts_name, "nothing");
	e = fts_read(f);
	CHECK_EQ(e->fts_info, FTS_SLNONE);
	CHECK(!fts_read(f));
	fts_close(f);

	char *one[] = { "t", 0 };
	f = fts_open(one, FTS_PHYSICAL, by_name);
	CHECK_STR(fts_children(f, 0)->fts_name, "t");
	CHECK_STR(fts_read(f)->fts_name, "t");
	e = fts_children(f, FTS_NAMEONLY);
	CHECK_STR(e->fts_name, "d");
	CHECK_STR(e->fts_link->fts_name, "e");
	CHECK_STR(fts_read(f)->fts_name, "d");
	fts_close(f);

	CHECK(!fts_open(one, 0x4000, 0) && errno == EINVAL);
	unlink("t/x");
	unlink("t/d/up");
	unlink("t/d/f");
	rmdir("t/d");
	rmdir("t/e");
	rmdir("t");
	return check_done();
}
