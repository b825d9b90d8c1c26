/*
 * The replay grate: the record, and what its files share. Numbers are little-endian.
 *
 *	head                       written by lind-boot: see lind-boot/src/replay
 *	block, its data            any number of times
 *
 * A block belongs to one cage, and holds its records in their order, compressed by LZ4. Blocks of
 * different cages come in any order; `first` says which began earlier.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <lind/grate.h>
#include <lind/syscall_table.h>

#define BLOCK_MAGIC 0x4b4c424cu  /* LBLK */
#define BLOCK_SIZE  (256u << 10)  /* from so many bytes of records on a block is written */
#define RECORD_MOST (1u << 30)   /* bytes of one block, before compression */
#define PATH_ROOM   4352

/* The requests of steer. */
enum steer { STEER_ASK, STEER_INTERRUPT, STEER_PLAN, STEER_CHILD, STEER_END };

enum block_kind {
	BLOCK_CALLS = 1, /* records */
	BLOCK_PROGRAM,  /* a program that was started: path, NUL, fingerprint, NUL */
	BLOCK_START, /* of the first program: argv, each word behind =, an empty text, the environment likewise, the directory */
	BLOCK_END, /* of the recording: struct ending, and a reason with its NUL */
};

struct block {
	uint32_t magic, kind;
	uint32_t cage;
	uint32_t raw, packed; /* bytes of data: uncompressed, and in the file */
	uint32_t sum; /* CRC-32 of the data in the file */
	uint64_t first; /* number of the first record */
	uint32_t check; /* CRC-32 of what is before it */
	uint32_t pad;
};

struct ending {
	uint64_t calls, nanoseconds;
	uint32_t whole; /* 0: the recording ended before the programs */
	uint32_t pad;
};

/* Records that are not calls of the program. */
#define NR_END 0xfffffff0u /* the cage has ended with the wait status `result` */

/* Flags of a record. */
#define WAS_INTERRUPTED 1u /* a signal interrupted the call */
#define ON_STDOUT       2u /* it wrote to what was standard output at the start */
#define ON_STDERR       4u

/* The next record begins at a multiple of 8. */
#define STRIDE(record) (sizeof *(record) + (((record)->bytes + 7u) & ~7u))

/* A call. Behind it lie `bytes` bytes: its texts, then the pieces of memory that it wrote. */
struct record {
	uint32_t nr, bytes;
	uint64_t number; /* in the order in which calls returned */
	int64_t result;
	uint64_t args[6];
	uint32_t flags;
	uint32_t turn; /* of the writes to that output, from 1 on */
};

/* A cage of the recorded programs. */
struct client {
	uint32_t cage;
	bool beside; /* a grate of the replay's own line, whose calls are not in the record */
	struct fds *fds;
	struct shared *shared;
	/* The records not yet written, or those read last. */
	uint32_t lock;
	bool closed;
	char *data;
	size_t size, used, at;
	uint64_t first;
	/* The block that is read next: its place among the blocks, or -1. */
	long next;
	bool ending; /* STEER_END was sent */
	struct client *again; /* what the replay did, if that is written */
};

/* Bytes that are put together; a failure is remembered. */
struct bytes {
	char *data;
	size_t size, used;
};

/* fields.c */
void bytes_add(struct bytes *b, const void *data, size_t length);
char *bytes_room(struct bytes *b, size_t length);
void bytes_free(struct bytes *b);
uint32_t crc32_of(uint32_t before, const void *data, size_t length);
const struct lind_syscall *row_of(uint32_t nr);
void rows_begin(void);

/* log.c: writing. */
const char *log_open(const char *value);
void log_block(uint32_t kind, uint32_t cage, uint64_t first, const void *data, size_t length);
uint64_t log_number(void);
/* So many calls have been numbered otherwise. */
void log_numbered(uint64_t count);
void log_add(struct client *client, const struct record *record, const void *more);
void log_close(struct client *client);
void log_end(bool whole, const char *reason);

/* read.c: reading. */
struct log;
struct log *read_open(const char *value, const char **wrong);
long read_first(const struct log *log, uint32_t cage);
/* The next record of a cage, which is not taken yet; NULL at its end. */
const struct record *read_next(struct log *log, struct client *cursor);
void read_take(struct client *cursor);
uint32_t read_start(const struct log *log);
/* Writes the blocks that say what to start into the record that is being written. */
void read_copy_starts(const struct log *log);
const struct ending *read_ending(const struct log *log, const char **reason);
/* The cages of a record in their order: the number of one, 0 behind the last. */
uint32_t read_cage(const struct log *log, size_t place);

/* texts.c: what a call is given by name, for a comparison that shows where it differs. */
size_t texts_of(const struct lind_call *c, const struct lind_syscall *row, char *to, size_t room);
#define TEXTS_ROOM (4 * PATH_ROOM)

/* pieces.c: where a call writes into its client's memory. */
struct piece {
	struct lind_arg at;
	uint32_t length;
};
#define PIECES 1100
struct pieces {
	size_t count;
	bool trims; /* the first pieces hold as many bytes as the result says */
	bool cut; /* the call may write more than a record can hold */
	size_t trimmed;
	struct piece list[PIECES];
};
bool writes_memory(const struct lind_syscall *row);
void pieces_before(const struct lind_call *c, const struct lind_syscall *row, struct pieces *p);
void pieces_after(const struct lind_call *c, int64_t result, struct pieces *p);
void pieces_read(const struct pieces *p, struct bytes *to);
/* Writes the bytes of a record; false if they are more than the call could have written. */
bool pieces_write(const struct pieces *p, const char *from, size_t length);

/* fds.c: which descriptors are the standard ones of the start. */
struct fds *fds_new(void);
struct fds *fds_copy(const struct fds *fds);
void fds_free(struct fds *fds);
void fds_exec(struct fds *fds);
void fds_after(struct fds *fds, const struct lind_call *c, int64_t result);
/* 1 or 2 for what is that output, 0 for standard input, -1 for others. */
int fds_standard(const struct fds *fds, uint64_t fd);
void fds_show(const struct fds *fds);

/* living.c: the programs, which end with the grate. */
void living_add(uint32_t cage);
void living_remove(uint32_t cage);
_Noreturn void living_end(int status);
/* The first program has ended: returns unless living_end has ended it, which has the status. */
void living_ended(void);

/* program.c: starting programs. */
int64_t program_record(struct client *client, const struct lind_call *c, struct bytes *found);
int64_t program_again(const struct lind_call *c, const char *found, size_t length);

/* shared.c: memory that a recording cannot hold. */
struct shared *shared_new(void);
struct shared *shared_copy(const struct shared *shared);
void shared_free(struct shared *shared);
/* The reason why the recording ends with this call, or NULL. */
const char *shared_before(const struct client *client, const struct lind_call *c);
const char *shared_after(struct client *client, const struct lind_call *c, int64_t result);

/* record.c, again.c */
lind_handle_fn on_record, on_record_last, on_record_exec, on_signalled;
lind_handle_fn on_again, on_again_spawn;
const struct lind_lifecycle *record_lifecycle(void);
const struct lind_lifecycle *again_lifecycle(void);
void record_begin(int argc, char **argv);
void again_begin(struct log *log, unsigned beside, uint64_t until, bool writes);
_Noreturn void differs(
    const struct client *client, const struct lind_call *c, const struct record *r, const char *texts);
bool made_again(uint32_t nr);

/* output.c: what programs have printed, in its order. */
void output_again(const struct lind_call *c, const struct record *r);
/* For recording: the write and its number belong together. */
int64_t output_record(const struct lind_call *c, int which, uint32_t *turn);

/* watch.c: a replay that does not go on is ended. */
void watch_begin(const struct ending *ending);
void watch_progress(void);

/* compare.c */
int compare(struct log *one, struct log *other, const char *name);

/* show.c */
void show_call(char *to, size_t room, uint32_t nr, const uint64_t args[6], const char *texts, size_t length);
void show_result(char *to, size_t room, const struct record *r);
void show_last(void);
void show_note(const struct client *client, const struct record *r);

#endif
