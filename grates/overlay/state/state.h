/* Declarations that the files of the store share. */
#ifndef OVERLAY_STATE_H
#define OVERLAY_STATE_H

#include "data.h"
#include "store.h"
#include "vfs.h"

/* Statements are made when they are first needed, and kept. */
enum statement {
	BEGIN,
	COMMIT,
	ROLLBACK,
	GET,
	GONE_BELOW,
	PUT,
	FORGET,
	BASES,
	SET_BASE,
	NAMES,
	NAME,
	NAME_BELOW,
	UNNAME,
	READ,
	READ_OWN,
	NEXT_CHUNK,
	WRITE,
	CUT,
	DROP_BLOCKS,
	SIZE,
	SLOTS,
	OWN_SLOTS,
	LOG,
	NEXT_INO,
	STATEMENTS
};

struct store {
	sqlite3 *db;
	struct vfs vfs;
	struct data *data;  /* NULL: the state is one file, with all bytes in its rows */
	char vfs_name[32];
	char head[64];
	sqlite3_stmt *statements[STATEMENTS];
	int64_t *chain; /* the layers that are seen, the head's own first: each number is less than the one before */
	size_t depth;
	uint64_t *inodes; /* a hash set of all that nodes has, of a power of two in size; made when it is asked for */
	size_t inodes_size, inodes_count;
	uint64_t next_ino;
	bool next_ino_changed;
	bool changed; /* a transaction has begun */
	bool unsynced; /* there are transactions that may not be on the disk */
	bool untidy; /* layers that nobody needs stay for now */
	char problem[256];
};

static inline int64_t store_layer(const struct store *store)
{
	return store->chain[0];
}

/* Turns an error of SQLite into the negative of an errno; keeps its words. The transaction is
 * rolled back: nothing of it is kept. */
int store_fail(struct store *store, int code);
/* The same for errors of other origin: returns `error`, which is already negative, and keeps the
 * words. */
int store_blame(struct store *store, int error, const char *format, ...);
/* A statement ready to be bound to; NULL: store->problem says why. */
sqlite3_stmt *store_statement(struct store *store, enum statement which);
/* Runs one without rows, and is done with it. */
int store_run(struct store *store, sqlite3_stmt *statement);
/* Begins a transaction for changes, unless there is one. */
int store_begin(struct store *store);
/* Whether what this layer holds is seen. */
bool store_sees(const struct store *store, int64_t layer);
/* Reads `chain` again. -ENOENT: no such head. */
int store_load_chain(struct store *store);
/* Runs SQL text. */
int store_exec(struct store *store, const char *sql);

static inline int64_t in_nanoseconds(struct timespec ts)
{
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline struct timespec of_nanoseconds(int64_t n)
{
	int64_t seconds = n / 1000000000, rest = n % 1000000000;

	if (rest < 0) {
		rest += 1000000000;
		seconds--;
	}
	return (struct timespec){ .tv_sec = (time_t)seconds, .tv_nsec = (long)rest };
}

#endif
