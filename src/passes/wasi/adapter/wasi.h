/*
 * WASI preview 1 over Linux system calls: what every file of the adapter uses.
 *
 * The adapter becomes part of the program that it serves (src/passes/wasi), and shares its memory.
 * Addresses of the program are 32 bits and are used unchecked: the kernel checks those that it
 * gets, and other accesses trap as the program's own would. The adapter has no data of its own in
 * memory but `struct state`, whose page the start maps, and its stack. So it must not have
 * constants that live in memory: no strings, no tables.
 */
#ifndef WASI_H
#define WASI_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(#name)))

/* A result of WASI's functions: 0, or an error in WASI's numbers. */
typedef uint32_t result_t;
typedef uint32_t fd_t;

enum {
	WASI_ACCES = 2,
	WASI_BADF = 8,
	WASI_FAULT = 21,
	WASI_ILSEQ = 25,
	WASI_INVAL = 28,
	WASI_IO = 29,
	WASI_ISDIR = 31,
	WASI_LOOP = 32,
	WASI_NAMETOOLONG = 37,
	WASI_NOENT = 44,
	WASI_NOTDIR = 54,
	WASI_NOTSUP = 58,
	WASI_OVERFLOW = 61,
	WASI_PERM = 63,
	WASI_NOTCAPABLE = 76,
};

/* The numbers and structures of Linux on x86-64, which the cages' kernel uses. */
enum {
	SYS_READ = 0,
	SYS_WRITE = 1,
	SYS_CLOSE = 3,
	SYS_FSTAT = 5,
	SYS_LSEEK = 8,
	SYS_MMAP = 9,
	SYS_IOCTL = 16,
	SYS_PREADV = 295,
	SYS_PWRITEV = 296,
	SYS_READV = 19,
	SYS_WRITEV = 20,
	SYS_SCHED_YIELD = 24,
	SYS_DUP2 = 33,
	SYS_GETPID = 39,
	SYS_SHUTDOWN = 48,
	SYS_SENDMSG = 46,
	SYS_RECVMSG = 47,
	SYS_GETSOCKOPT = 55,
	SYS_KILL = 62,
	SYS_FCNTL = 72,
	SYS_FSYNC = 74,
	SYS_FDATASYNC = 75,
	SYS_FTRUNCATE = 77,
	SYS_GETDENTS64 = 217,
	SYS_FADVISE64 = 221,
	SYS_CLOCK_GETTIME = 228,
	SYS_CLOCK_GETRES = 229,
	SYS_CLOCK_NANOSLEEP = 230,
	SYS_EXIT_GROUP = 231,
	SYS_OPENAT = 257,
	SYS_MKDIRAT = 258,
	SYS_NEWFSTATAT = 262,
	SYS_UNLINKAT = 263,
	SYS_RENAMEAT = 264,
	SYS_LINKAT = 265,
	SYS_SYMLINKAT = 266,
	SYS_READLINKAT = 267,
	SYS_PPOLL = 271,
	SYS_UTIMENSAT = 280,
	SYS_FALLOCATE = 285,
	SYS_ACCEPT4 = 288,
	SYS_GETRANDOM = 318,
	SYS_OPENAT2 = 437,
};

enum {
	O_WRONLY = 01,
	O_RDWR = 02,
	O_CREAT = 0100,
	O_EXCL = 0200,
	O_TRUNC = 01000,
	O_APPEND = 02000,
	O_NONBLOCK = 04000,
	O_DSYNC = 010000,
	O_DIRECTORY = 0200000,
	O_NOFOLLOW = 0400000,
	O_CLOEXEC = 02000000,
	O_SYNC = 04010000,
	O_PATH = 010000000,
	F_GETFL = 3,
	F_SETFL = 4,
	AT_FDCWD = -100,
	AT_SYMLINK_NOFOLLOW = 0x100,
	AT_REMOVEDIR = 0x200,
	AT_EMPTY_PATH = 0x1000,
	RESOLVE_BENEATH = 8,
	PATH_MAX = 4096,
};

enum { E_INTR = 4, E_BADF = 9, E_XDEV = 18, E_NOTDIR = 20, E_INVAL = 22, E_NOSYS = 38 };

struct stat {
	uint64_t dev, ino, nlink;
	uint32_t mode, uid, gid, pad;
	uint64_t rdev;
	int64_t size, blksize, blocks;
	struct {
		int64_t seconds, nanoseconds;
	} accessed, modified, changed;
	int64_t unused[3];
};

struct timespec {
	int64_t seconds, nanoseconds;
};

/* WASI's own structures. */
struct filestat {
	uint64_t dev, ino;
	uint64_t type; /* one byte and padding */
	uint64_t nlink, size, accessed, modified, changed;
};

struct fdstat {
	uint8_t type, pad;
	uint16_t flags;
	uint32_t pad2;
	uint64_t rights, inheriting;
};

enum filetype { UNKNOWN, BLOCK, CHARACTER, DIRECTORY, REGULAR, SOCKET_DGRAM, SOCKET_STREAM, SYMLINK };

enum rights {
	R_DATASYNC = 1 << 0,
	R_READ = 1 << 1,
	R_SEEK = 1 << 2,
	R_FDSTAT_SET_FLAGS = 1 << 3,
	R_SYNC = 1 << 4,
	R_TELL = 1 << 5,
	R_WRITE = 1 << 6,
	R_ADVISE = 1 << 7,
	R_ALLOCATE = 1 << 8,
	R_PATH_CREATE_DIRECTORY = 1 << 9,
	R_PATH_CREATE_FILE = 1 << 10,
	R_PATH_LINK_SOURCE = 1 << 11,
	R_PATH_LINK_TARGET = 1 << 12,
	R_PATH_OPEN = 1 << 13,
	R_READDIR = 1 << 14,
	R_READLINK = 1 << 15,
	R_RENAME_SOURCE = 1 << 16,
	R_RENAME_TARGET = 1 << 17,
	R_PATH_FILESTAT_GET = 1 << 18,
	R_PATH_FILESTAT_SET_SIZE = 1 << 19,
	R_PATH_FILESTAT_SET_TIMES = 1 << 20,
	R_FILESTAT_GET = 1 << 21,
	R_FILESTAT_SET_SIZE = 1 << 22,
	R_FILESTAT_SET_TIMES = 1 << 23,
	R_SYMLINK = 1 << 24,
	R_REMOVE_DIRECTORY = 1 << 25,
	R_UNLINK_FILE = 1 << 26,
	R_POLL = 1 << 27,
	R_SHUTDOWN = 1 << 28,
	R_ACCEPT = 1 << 29,
	R_ALL = (1 << 30) - 1,
	R_OF_DIRECTORIES = R_FDSTAT_SET_FLAGS | R_SYNC | R_DATASYNC | R_ADVISE | R_PATH_CREATE_DIRECTORY |
	    R_PATH_CREATE_FILE | R_PATH_LINK_SOURCE | R_PATH_LINK_TARGET | R_PATH_OPEN | R_READDIR | R_READLINK |
	    R_RENAME_SOURCE | R_RENAME_TARGET | R_PATH_FILESTAT_GET | R_PATH_FILESTAT_SET_SIZE |
	    R_PATH_FILESTAT_SET_TIMES | R_FILESTAT_GET | R_FILESTAT_SET_TIMES | R_SYMLINK | R_REMOVE_DIRECTORY |
	    R_UNLINK_FILE | R_POLL,
	R_OF_FILES = R_DATASYNC | R_READ | R_SEEK | R_FDSTAT_SET_FLAGS | R_SYNC | R_TELL | R_WRITE | R_ADVISE |
	    R_ALLOCATE | R_FILESTAT_GET | R_FILESTAT_SET_SIZE | R_FILESTAT_SET_TIMES | R_POLL,
};

enum fdflags { FD_APPEND = 1, FD_DSYNC = 2, FD_NONBLOCK = 4, FD_RSYNC = 8, FD_SYNC = 16 };
enum { FOLLOW = 1 };

#define PREOPENS 64

/* The state of the adapter. It lies in pages of its own, above its stack. */
struct state {
	uint32_t argc, argv, envp, envc;
	uint32_t pages; /* the size of the memory as the program knows it, in pages of 64 KiB */
	uint32_t preopens;
	struct {
		fd_t fd;
		uint32_t name, length;
	} preopen[PREOPENS];
	char path[2][PATH_MAX];
	char walk[2 * PATH_MAX], says[PATH_MAX], dot[2]; /* walk.c's */
	char entries[8192];
	uint64_t *places; /* fds.c's: NULL before it is made, NO_PLACES if it cannot be */
};

_Static_assert(sizeof(struct state) <= 32768, "start.s maps so much");

/* start.s */
struct state *state(void);
int64_t lind_syscall(int32_t number, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t)
    __attribute__((import_module("lind"), import_name("syscall")));

static inline int64_t address(const void *at)
{
	return (uint32_t)(uintptr_t)at;
}

#define CALL6(n, a, b, c, d, e, f) \
	lind_syscall(n, (int64_t)(a), (int64_t)(b), (int64_t)(c), (int64_t)(d), (int64_t)(e), (int64_t)(f))
#define CALL5(n, a, b, c, d, e) CALL6(n, a, b, c, d, e, 0)
#define CALL4(n, a, b, c, d)    CALL6(n, a, b, c, d, 0, 0)
#define CALL3(n, a, b, c)       CALL6(n, a, b, c, 0, 0, 0)
#define CALL2(n, a, b)          CALL6(n, a, b, 0, 0, 0, 0)
#define CALL1(n, a)             CALL6(n, a, 0, 0, 0, 0, 0)

/* WASI's error number for the result of a call: 0 for success. */
result_t error_of(int64_t returned);

/* openat2 with RESOLVE_BENEATH, where the kernel has no such call. */
int64_t walk_below(int32_t fd, const char *path, uint64_t flags, uint64_t mode);

/* The type of a descriptor: a filetype, or UNKNOWN with `*error` set. */
enum filetype type_of(fd_t fd, struct stat *stat, result_t *error);
void fill_filestat(const struct stat *from, enum filetype type, struct filestat *to);

/* Converts nanoseconds to seconds and nanoseconds. */
static inline struct timespec timespec_of(uint64_t nanoseconds)
{
	struct timespec t = { (int64_t)(nanoseconds / 1000000000), (int64_t)(nanoseconds % 1000000000) };
	return t;
}

#endif
