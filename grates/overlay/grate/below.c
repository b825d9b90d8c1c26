/* The functions that the file system in memory asks where something is not in it. */
#include "below.h"
#include "cache.h"
#include "flush.h"
#include "list.h"
#include "lower.h"
#include "marks.h"
#include "nodes.h"
#include "saved.h"
#include "watches.h"

static void gone_node(struct imfs_node *n)
{
	struct imfs_under *u = n->under;

	cache_forget(u);
	note_gone(u);
	lower_close(u);
	watch_forget(u);
	node_free(u);
}

static int make_room(struct imfs *filesystem)
{
	int r = store_broken();

	(void)filesystem;
	if (!r && marks_dirty_bytes > DIRTY_MOST && store)
		r = flush_some();
	cache_make_room();
	return r;
}

static int sync_all(void)
{
	return flush_all(true);
}

const struct imfs_below overlay_below = {
	.born = node_born,
	.gone = gone_node,
	.list = list_names,
	.know = know_node,
	.xattrs = know_xattrs,
	.readable = cache_readable,
	.room = make_room,
	.straight = cache_straight,
	.whole = cache_whole,
	.fill = cache_fill,
	.seek = cache_seek,
	.cut = cache_cut,
	.space = lower_space,
	.blocks = cache_blocks,
	.changed = note_changed,
	.wrote = note_wrote,
	.mapped = note_mapped,
	.unnamed = note_unnamed,
	.sync = sync_all,
};
