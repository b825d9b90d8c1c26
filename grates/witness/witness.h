/*
 * The witness grate: its log, and what its files share. Numbers are little-endian; the README says
 * what is detected.
 *
 *	start                                     once
 *	block, records, seal                      any number of times
 *
 * A seal has the hash of the hash before it, the block and its records, BLAKE3(before, block,
 * records); the first `before` is BLAKE3(start). It has a signature, by the key in `start`, of the
 * statement that this hash follows so many blocks and records.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH       32
#define SIGNATURE  64
#define BLOCK_SIZE (512u << 10)  /* at most so many bytes of records in a block */

struct start {
	char magic[8];   /* LINDWIT1 */
	uint8_t key[32];  /* Ed25519, public */
	uint8_t id[16];   /* random */
	uint64_t time;   /* nanoseconds since 1970 */
};

struct block {
	char magic[4];   /* BLCK */
	uint32_t size;   /* of its records */
	uint64_t number, first;  /* blocks and records before it */
	uint32_t count;   /* records in it */
	uint32_t last;   /* 1: the grate ended as it should, and no block follows */
};

/* The signed statement. */
struct statement {
	char magic[16];   /* "lind witness 1" and NULs */
	uint8_t id[16];
	uint64_t blocks, records;
	uint64_t last;
	uint8_t hash[HASH];
};

struct seal {
	uint8_t hash[HASH], signature[SIGNATURE];
};

/* LOG.head has two of these, written in turn, so that one is whole whenever the other is being
 * written. */
struct head {
	struct statement statement;
	uint8_t signature[SIGNATURE];
};

/* A call; then its arguments as 64-bit numbers, then texts until `size` is used up. */
struct record {
	uint32_t size;   /* with all that belongs to it, a multiple of 8 */
	uint16_t nr, arguments;
	uint32_t cage;
	uint32_t of_grate;  /* 1: a grate of the line has made it for itself */
	uint64_t time;   /* when it returned */
	int64_t result;
};

/* The data that an argument pointed to: a path or an address, as it was passed on. Its bytes
 * follow, and NULs up to a multiple of 8. */
struct piece {
	uint16_t argument, kept; /* the number of bytes that follow */
	uint32_t length;  /* how many there were */
};

_Static_assert(sizeof(struct start) == 64 && sizeof(struct block) == 32 && sizeof(struct statement) == 88 &&
	sizeof(struct seal) == 96 && sizeof(struct head) == 152 && sizeof(struct record) == 32 &&
	sizeof(struct piece) == 8,
    "the layouts are the file's");

/* chain.c */
void chain_start(const struct start *start, uint8_t hash[HASH]);
/* Replaces the hash before by the one behind, and says what is to be signed. */
void chain_block(uint8_t hash[HASH], const struct start *start, const struct block *block, const void *records,
    struct statement *statement);

/* log.c: writing. */
void log_open(const char *path, const uint8_t seed[32]);
bool log_takes(void);   /* whether calls may be made: false once the log is broken or has ended */
bool log_add(const struct record *record, const uint64_t *arguments, const void *texts,
    size_t texts_size); /* false: it is not in the log */
void log_flush(bool last);
void log_watch(void);   /* writes what there is four times a second */

/*
 * verify.c: 0 whole, 1 wrong, 2 whole as far as it goes but without its end, 3 not readable. Prints
 * what it finds. A `copy` of the head was made earlier: the log may have become longer.
 */
/* `head` is the log for the file beside it. */
int verify(const char *log, const char *head, bool copy, const char *key, bool show);

#endif
