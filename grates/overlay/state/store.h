/*
 * The state that an overlay keeps between runs: SQLite in one file, or in a directory with data
 * files beside it for the blocks of large files (data.h). The tables are described in README.md.
 *
 * A state is a tree of layers. Changes go to the layer of the head that is open; where it says
 * nothing of an inode, a name or a block, the layers below it do. A snapshot gives the layer a name
 * and puts a new one on top.
 *
 * Functions return 0, or a value, or the negative of an errno: -EIO if SQLite says that the file is
 * damaged or cannot be written (store_problem says more), -ENOSPC, -ENOMEM. After a failure nothing
 * is kept of what was changed since the last commit. Nothing here locks: one caller at a time.
 */
#ifndef OVERLAY_STORE_H
#define OVERLAY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define STORE_CHUNK     65536u  /* bytes of a file that lie in one row */
#define STORE_BLOCK     4096u  /* and in one block; a row has those of its 16 that were changed */
#define STORE_ROOT      1u   /* number of the directory itself, whatever it has below */
#define STORE_FIRST_INO (1ull << 60) /* of files that were made here; below it are the lower directory's own numbers */

struct store;

/* By what a file below is known to be the one that was changed: `apply` refuses if it is another
 * by then. */
struct store_stamp {
	uint64_t ino;
	int64_t size;
	struct timespec mtime, ctime;
};

/* An inode that differs from the one below, or is not there. */
struct store_node {
	uint64_t ino, rdev;
	uint32_t mode, nlink, uid, gid;
	int64_t size;
	struct timespec atime, mtime, ctime, btime;
	/* The path below the lower directory, without a slash before it ("" is the directory itself),
	 * that shows through: names of a directory that have no row here, bytes of a file whose blocks
	 * have none. NULL: nothing does. It stays when the file is renamed. */
	const char *origin;
	int64_t origin_size; /* bytes of the file that may show through: what truncate cut off never comes back */
	struct store_stamp stamp; /* of `origin` when it was first changed */
	const char *target; /* of a symbolic link, else NULL */
	const void *xattrs; /* all of them: name, NUL, 32-bit size, value, and so on */
	uint32_t xattrs_size;
};

/* Opens a state; the descriptors are the store's from then on. `wal` is the log beside it,
 * `data` the directory of data files, or -1 if the state is one file. A file that is not a state
 * is not written to. `lower` is the user's name for the lower directory: it is kept in a new
 * state, which an empty file becomes; -EXDEV: the state belongs to another. NULL: it may be any,
 * and nothing is made. `head`: NULL for "main". The state is locked as long as it is open, also
 * against sqlite3; -EBUSY: another process has locked it. After a failure store_problem says
 * why, and store_close is still due. A torn end of the log is cut, as SQLite does; what SQLite
 * takes for damaged is -EIO. */
int store_open(struct store **made, int db, int wal, int data, const char *lower, const char *head);
/* Commits, puts the log into the file, closes. */
int store_close(struct store *store);
const char *store_problem(const struct store *store); /* what was wrong, for people */
bool store_is_applying(struct store *store); /* its changes are being made below, and that is not at its end */

/* Reading. Returned pointers are valid until the next call of the same function, or a commit. */
bool store_has(struct store *store, uint64_t ino); /* from memory: an inode without a row costs no query */
int store_get(struct store *store, uint64_t ino, struct store_node *node); /* 1, or 0 if it has none */
/* The names of a directory that have a row: `ino` 0 is one that was removed. Ends early if
 * `each` returns not 0, and returns that. */
int store_names(struct store *store, uint64_t dir, int (*each)(void *to, const char *name, uint64_t ino), void *to);
/* Blocks of chunk `chunk` that have been stored go to their places in `bytes` (STORE_CHUNK of
 * them), the others stay as they are. Bit i of the result is block i. */
int store_read(struct store *store, uint64_t ino, uint64_t chunk, uint8_t *bytes);
/* The first chunk from this one on that a layer has blocks of; INT64_MAX: there is none. Or an
 * error. */
int64_t store_next_chunk(struct store *store, uint64_t ino, uint64_t chunk);
uint64_t store_next_ino(const struct store *store); /* the first that no file has had */

/* Changing. All of it is in the file after the next store_commit, all or nothing. */
/* Every inode with a row, except the root, has a name in a row too, up to the root: so paths are
 * found. */
int store_put(struct store *store, const struct store_node *node);
int store_forget(struct store *store, uint64_t ino); /* the file is gone: its row and its blocks */
int store_name(
    struct store *store, uint64_t dir, const char *name, uint64_t ino); /* 0: removed, and the lower directory has it */
int store_unname(struct store *store, uint64_t dir,
    const char *name); /* as in the lower directory: removed, if that has none of it */
/* Writes the blocks of `mask`, each at its place in `bytes`. A block of zeros is kept as a flag. */
int store_write(struct store *store, uint64_t ino, uint64_t chunk, uint16_t mask, const uint8_t *bytes);
int store_cut(struct store *store, uint64_t ino, int64_t size); /* blocks that begin at `size` or behind it are gone */
int store_took_ino(struct store *store, uint64_t next);
/* A line of the log: what `command` (program and arguments) did to a path ('A' made, 'M'
 * changed, 'D' removed, 'R' renamed to `to`). */
int store_log(
    struct store *store, struct timespec at, const char *command, char kind, const char *path, const char *to);
/* Commits. With `durable` the data is on the disk when this returns, as fsync(2) promises; without,
 * other processes see it. */
int store_commit(struct store *store, bool durable);

#endif
