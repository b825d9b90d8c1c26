/*
 * The overlay grate: imfs with a directory below it, whose files show through, and a state that
 * keeps what was changed.
 *
 * A node has one of these beside it. Everything here is under the lock of imfs, held for writing;
 * the store has a mutex of its own inside that, so that a commit waits for the disk without holding
 * up who reads from memory.
 */
#ifndef OVERLAY_H
#define OVERLAY_H

#include <stdlib.h>
#include "../imfs/grate.h"
#include "store.h"

#define ROOT_INO 1u  /* of the root in the store, whatever the lower directory's own number is */

struct left_out {
	struct left_out *next;
	char name[];
};

struct imfs_under {
	struct imfs_node *node;
	struct imfs_under *same_hash;
	struct imfs_under *next_dirty, **at_dirty;
	struct imfs_under *next_cached, **at_cached;
	struct imfs_under *next_mapped;
	char *origin;   /* path below the lower directory, "" for itself. NULL: nothing of it shows here */
	int64_t origin_size;  /* bytes that may show */
	int64_t cut;   /* what the store has from here on is void; INT64_MAX: nothing */
	int64_t stored_end;  /* behind it the store has no blocks */
	uint64_t blocks;  /* of the lower file */
	struct store_stamp stamp; /* of the lower file as it was found */
	uint32_t who, logged;  /* whose call changed it last, and of whose the log has a line */
	uint32_t hidden;  /* names of the lower directory that are removed, or lead elsewhere */
	bool row, first_row;  /* the store has one; it had one when the run began */
	bool foreign;   /* on another device than the lower directory */
	bool blind;   /* the lower directory may be searched but not read */
	struct left_out *left_out; /* which of its names were removed in this run */
	int fd;    /* of the lower file, or -1 */
	int watch;   /* by which it is told what others do in the lower directory, or -1 */
	uint8_t *stored; /* bit i: the store has blocks of chunk i. Of what was in it from the start it is not known */
	uint64_t stored_count; /* bits there is room for */
	bool xattrs_known, mapped;
	bool compared; /* with the store, in this flush */
};

extern struct store *store; /* NULL: what is changed is gone at the end */

/* The number that the store knows a node by. */
static inline uint64_t row_ino(const struct imfs_node *n)
{
	return n == fs.root ? ROOT_INO : n->ino;
}

/* nodes.c: which nodes there are, by their numbers. */
struct imfs_node *node_by_ino(uint64_t ino);
void node_renumber(struct imfs_node *n, uint64_t ino);
struct imfs_node *node_make(uint32_t mode, uint64_t ino, struct imfs_node *dir); /* NULL: no memory */
void node_shows(struct imfs_node *n, char *origin); /* that is below it; takes it over */
struct imfs_node *node_of_row(
    uint64_t ino, struct imfs_node *dir); /* from the row in the store. NULL: no row, or no memory */
void node_from_row(struct imfs_node *n, const struct store_node *row);
int under_born(struct imfs_node *n);
void under_gone(struct imfs_node *n);
extern const struct imfs_below overlay_below;

/* lower.c: the directory below, which is only read. Paths are as `origin`. Descriptors belong to
 * the table. */
struct statx;
int lower_init(const char *path);
int lower_dir(const char *path);
int lower_file(struct imfs_under *u);
void lower_close(struct imfs_under *u);
int lower_stat(const char *path, struct statx *st);
int lower_link(const char *path, char *target, size_t size); /* its length */
void lower_space(uint64_t *blocks, uint64_t *left);
bool lower_is_home(const struct statx *st); /* on the device of the lower directory */
char *lower_join(const char *dir, const char *name); /* malloc; NULL: no memory */

/* list.c */
int list_names(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length);
int list_without(struct imfs_under *dir, const char *name); /* the name below is removed here */
int list_vanished(struct imfs_node *n); /* somebody has removed it below, or put something else there; -ENOENT */
void list_forget(struct imfs_under *dir);
int know_node(struct imfs *fs, struct imfs_node *n);
int know_xattrs(struct imfs *fs, struct imfs_node *n);

/* others.c: what others do in the lower directory. The lock is held, but for the beginning. */
void others_begin(void);
void others_watch(struct imfs_under *dir);
void others_forget(struct imfs_under *u);

/* cache.c */
extern uint64_t cache_limit, dirty_bytes;
int cache_room(struct imfs *fs);
int cache_fill(struct imfs_node *n, uint64_t index, uint8_t *bytes, uint32_t room);
int cache_cut(struct imfs *fs, struct imfs_node *n, int64_t size);
int cache_readable(struct imfs_node *n);
int64_t cache_seek(struct imfs_node *n, int64_t off, bool hole);
uint64_t cache_blocks(const struct imfs_node *n);
size_t cache_straight(const struct imfs_node *n, int64_t off, size_t max, int *fd);
int cache_whole(struct imfs_node *n);
void cache_stored(struct imfs_under *u, uint64_t index); /* the store has blocks of that chunk now */
void cache_wrote(struct imfs_node *n, struct imfs_chunk *c, uint16_t blocks);
void cache_forget(struct imfs_under *u); /* the node is about to go */

/* flush.c */
#define DIRTY_MOST (32u << 20) /* bytes of contents that are not in the state */
void note_changed(struct imfs_node *n);
void note_mapped(struct imfs_node *n);
void note_unnamed(struct imfs_entry *e);
void note_gone(struct imfs_under *u);
int flush_some(void); /* the lock is held: makes what is dirty clean */
int flush_all(bool durable); /* no lock is held */
int flush_failed(void); /* the errno for which the state takes nothing any more, or 0 */
int flush_begin(void); /* from now on, changes that nobody has asked to be kept are brought to the state now and then */
void store_enter(void); /* the store's mutex; the lock is held */
void store_leave(void);

/* log.c: commands have numbers, 0 is nobody's. The lock is held. */
uint32_t log_who(void); /* whose call is being served */
void log_exec(uint64_t cage); /* it runs another program */
int log_made_or_changed(struct imfs_node *n, bool is_new);
int log_unnamed(const struct imfs_node *dir, const char *name, struct imfs_node *n,
    uint32_t who); /* `n`: what had that name, if it is still there */

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
