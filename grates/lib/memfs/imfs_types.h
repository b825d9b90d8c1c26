/* The parts of the filesystem in memory: nodes, names, contents, open files, processes. */
#ifndef IMFS_TYPES_H
#define IMFS_TYPES_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define IMFS_CHUNK     65536u /* bytes of a file that are in one piece */
#define IMFS_BLOCK     4096u /* bytes that are written below in one piece */
#define IMFS_PATH      4096u  /* longest path with its NUL, as PATH_MAX */
#define IMFS_NAME      255u
#define IMFS_FIFO      65536u /* bytes that a fifo holds */
#define IMFS_PIPE_BUF  4096u /* and how many are written as a whole */
#define IMFS_XATTR     65536u /* bytes of an extended attribute, and of the names of all of a file */
#define IMFS_GROUPS    64u
#define IMFS_LINKS_MAX 40 /* symbolic links followed in one path */
#define IMFS_MAX_SIZE  (INT64_MAX - (int64_t)IMFS_CHUNK)

struct imfs_node;

/* Part of a file: bytes [index * IMFS_CHUNK, + room). A gap up to the next chunk is a hole.
 * Bytes at or beyond the file's size are zero. */
struct imfs_chunk {
	uint64_t index;
	uint8_t *data;
	uint32_t room;  /* a power of two, at most IMFS_CHUNK */
	uint16_t dirty;  /* blocks that the filesystem below has otherwise, if there is one */
};

/* The contents of a file that can be mapped: one piece of memory that clients have too. */
struct imfs_backing {
	uint8_t *base;
	uint64_t size;  /* what is behind `base`: at least the file's size */
	uint64_t room;  /* for the grate: how much it could be in this place, */
	int fd;   /* and the kernel's file with this memory */
};

/* A regular file's contents, chunks sorted by index. */
struct imfs_data {
	struct imfs_chunk *chunks;
	uint32_t count, room;
	uint64_t allocated; /* sum of the chunks' room */
	struct imfs_backing *backing; /* if not NULL the chunks are its parts, and there are no holes */
};

struct imfs_entry {
	struct imfs_entry *same_hash;
	struct imfs_entry *before, *after; /* in the order of cookies */
	struct imfs_entry *other; /* name of the same node */
	struct imfs_node *node, *dir;
	uint64_t cookie;
	uint32_t hash;
	uint16_t length;
	bool lower, stored, moved; /* the filesystem below has this name; so has the store; it leads elsewhere since */
	char name[];
};

struct imfs_dir {
	struct imfs_entry **buckets;
	uint32_t bucket_count, count;
	struct imfs_entry *first, *last;
	uint64_t next_cookie;
	struct imfs_node *parent; /* itself for the root; a removed directory keeps its last one */
	bool removed;
};

/* A record lock, fcntl(2) or flock(2). */
struct imfs_lock {
	struct imfs_lock *next;
	const void *owner; /* process or open file */
	int32_t pid; /* -1: belongs to an open file */
	bool write, flock;
	int64_t start, last; /* inclusive */
};

/* A fifo while somebody has it open. */
struct imfs_fifo {
	uint32_t readers, writers; /* open files */
	uint32_t reads_opened, writes_opened; /* how many there ever were */
	uint32_t word; /* changes with each change, for those who wait */
	uint32_t first, used; /* of the bytes, which go round */
	uint32_t sleepers; /* for the grate: how many of them there are */
	int ready, shown; /* and a descriptor that is as ready as the fifo, or -1, and how ready that is */
	uint8_t bytes[IMFS_FIFO];
};

/* An extended attribute: its name with a NUL, then its value. */
struct imfs_xattr {
	struct imfs_xattr *next;
	uint32_t size; /* of the value */
	char name[];
};

/* A caller that waits for a record lock, in the caller's memory. */
struct imfs_waiter {
	struct imfs_waiter *next;
	struct imfs_node *node;
	struct imfs_lock want;
	uint32_t word; /* a futex: not 0 when the lock may be tried again */
};

struct imfs_node {
	int64_t size;
	struct imfs_data data; /* regular files */
	struct timespec atime, mtime, ctime, btime;
	uint64_t ino, rdev;
	uint32_t mode, nlink, uid, gid;
	uint32_t refs; /* open files, working directories, mappings; entries count in nlink */
	uint32_t writers; /* open files and mappings that may write to it: it is not executed */
	uint32_t mappers; /* of those, mappings */
	uint32_t runners; /* processes that run it: it is not opened for writing */
	bool outside; /* a directory that stands for one outside this filesystem */
	bool linkable; /* it never had a name, and may get one: O_TMPFILE */
	bool unlisted, unknown,
	    lazy; /* below there are names, attributes, contents that are not here yet: struct imfs_below */
	struct imfs_under *under; /* what it is below; NULL if there is no such filesystem */
	struct imfs_entry *names;
	struct imfs_dir dir;
	char *target; /* symbolic links */
	struct imfs_xattr *xattrs;
	struct imfs_fifo *fifo; /* fifos that are open */
	struct imfs_watcher *watcher; /* instances of inotify */
	struct imfs_watch *watches; /* of this node */
	struct imfs_lock *locks;
};

/* A path below the prefix that leads outside. */
struct imfs_pass {
	char *path;
	size_t parent; /* the length of its directory's path */
};

struct imfs {
	struct imfs_node *root;
	char prefix[IMFS_PATH]; /* where it is mounted; "" for / */
	struct imfs_pass *passes;
	size_t pass_count;
	uint64_t limit, used; /* bytes */
	uint64_t contents; /* of those, what files hold */
	uint64_t nodes, next_ino;
	struct imfs_file *spare; /* closed ones */
	uint32_t spares;
};

/* Capabilities about files, as capabilities(7) numbers them. */
#define IMFS_CHOWN           (1u << 0)
#define IMFS_DAC_OVERRIDE    (1u << 1)
#define IMFS_DAC_READ_SEARCH (1u << 2)
#define IMFS_FOWNER          (1u << 3)
#define IMFS_FSETID          (1u << 4)
#define IMFS_SYS_ADMIN       (1u << 21) /* for attributes that are not for users */
#define IMFS_MKNOD           (1u << 27)
#define IMFS_ALL_CAPS \
	(IMFS_CHOWN | IMFS_DAC_OVERRIDE | IMFS_DAC_READ_SEARCH | IMFS_FOWNER | IMFS_FSETID | IMFS_SYS_ADMIN | \
	    IMFS_MKNOD)

struct imfs_cred {
	uint32_t uid, gid; /* for files: the effective ones, or what setfsuid(2) said */
	uint32_t ruid, rgid; /* real, for access(2) */
	uint32_t caps, rcaps; /* the capabilities of each */
	uint32_t group_count;
	uint32_t groups[IMFS_GROUPS];
};

/* An open file description: what dup(2) and fork(2) share. */
struct imfs_file {
	struct imfs_node *node;
	struct imfs_file *next_spare; /* while it is closed */
	int64_t pos;
	uint64_t last_cookie; /* of a directory: entries from here on came to be since its reading began */
	uint32_t flags;
	uint32_t refs; /* table slots, plus calls in progress */
	int32_t pos_lock;
	bool created; /* by the open that it is of */
};

#define IMFS_FDS 65536u /* no number reaches that */

struct imfs_fds {
	struct imfs_file **files; /* IMFS_FDS of them, which stay where they are */
	uint8_t *cloexec;
	uint32_t room; /* above all numbers in use */
};

/* The filesystem's state of one process. */
struct imfs_process {
	uint64_t pid; /* 0: it has no place in /proc */
	struct imfs_fds fds;
	struct imfs_node *cwd; /* NULL: outside, at cwd_path */
	char *cwd_path; /* NULL: outside and not known */
	uint32_t umask;
	bool limited;
	uint64_t largest; /* RLIMIT_FSIZE, if limited */
	struct imfs_cred cred;
};

/* The result of stat(2) and statx(2), in a layout that is the same everywhere. */
struct imfs_stat {
	uint64_t ino, size, blocks, rdev;
	uint32_t mode, nlink, uid, gid;
	struct timespec atime, mtime, ctime, btime;
};

#endif
