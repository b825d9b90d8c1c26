/*
 * The part of a session that serves requests for files. It runs as a program of the session, behind
 * the grates of its commands, so its calls are answered and denied as theirs are. Requests and
 * answers go over a socket to lind-boot (lind-boot/src/session/files/frames.rs is the other end).
 */
#ifndef SESSION_FILES_H
#define SESSION_FILES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum op { STAT, LIST, READ, WRITE, APPEND, RENAME, COPY, REMOVE, MKDIR, LINK, WATCH, PACK, UNPACK, OPS };

enum flag {
	FOLLOW = 1, /* a link at the end of the path */
	RECURSIVE = 2,
	PARENTS = 4,
	CREATE = 8, /* nothing may be there */
	MISSING_OK = 16,
	SET_MODE = 32,
	IN_PLACE = 64,
};

/* A request. The bytes behind it are two paths, each ended by a NUL. */
struct ask {
	uint32_t op, bytes, flags, mode;
	int64_t from, count;
	uint32_t depth, unused;
};

/* The bytes of a file that is written come in pieces, each behind its length. */
#define LAST_PIECE 0
#define GIVEN_UP   UINT32_MAX
#define PIECE      (64 << 10)
#define DEEPEST    128 /* directories within one another, each of which is open meanwhile */

enum kind { DATA, ENTRY, EVENT, SKIPPED, BEGUN, DONE };

/* An answer, before its bytes. */
struct report {
	uint32_t kind, bytes;
	int64_t value;
};

/* The bytes of an ENTRY: this, the name, and where a link leads to. */
struct entry {
	uint64_t ino, size;
	int64_t mtime; /* in nanoseconds */
	uint32_t mode, uid, gid, links, error, name, target, unused;
};

/* Ends of requests are 0 or the negative of an errno. */
int file_stat(const struct ask *ask, const char *path);
int file_list(const struct ask *ask, const char *path);
int file_read(const struct ask *ask, const char *path);
int file_write(const struct ask *ask, const char *path);
int file_copy(const struct ask *ask, const char *from, const char *to);
int file_remove(const struct ask *ask, const char *path);
int file_mkdir(const struct ask *ask, const char *path);
int file_watch(const struct ask *ask, const char *path);
int file_pack(const struct ask *ask, const char *path);
int file_unpack(const struct ask *ask, const char *path);

/* The socket to lind-boot. */
#define CHANNEL 0

/* Whether a file may be one that is being written, and gets its name at the end. */
#define TEMPORARY "lind-write-"
bool is_temporary(const char *name);

int serve_files(void);
/* Sends an answer; small ones wait for others. */
void tell(enum kind kind, int64_t value, const void *bytes, size_t count);
void tell_entry(const struct stat *st, int error, const char *name, const char *target);
void tell_skipped(const char *name);
void tell_now(void);
/* The value of the last answer, if all goes well. */
extern int64_t result;
/* Notes the path that `error` is about, and returns `error`. */
int fail_at(int error, const char *path);
/* The next bytes of what is written; 0 at the end, negative where the client has given up. */
int64_t next_bytes(void *to, size_t most);
/* Reads on to the end of the pieces. */
void pass_over(void);
/* Whether the client has sent something, or has gone. */
bool is_interrupted(void);

/* Opens the directory that a path's last name is in, and finds that name. */
int open_parent(const char *path, const char **name);
/* Opens a directory, without following a link. */
int open_directory(int at, const char *name);
int make_parents(const char *path);
int remove_at(int at, const char *name, bool recursive, unsigned depth);
/* Opens a regular file for reading. Neither a fifo nor a device is waited for. */
int open_regular(int at, const char *name, int flags, struct stat *st);
/* Whether a file has gone since its directory was read, or is of another kind. */
bool has_gone(int error);
bool is_dots(const char *name);

/* A file that takes its name when it is whole. */
struct made {
	int at, fd;
	char temporary[32];
};
int make_file(struct made *made, int at);
int name_file(struct made *made, const char *name, bool create);
void drop_file(struct made *made);
int write_whole(int fd, const char *bytes, size_t count);

#endif
