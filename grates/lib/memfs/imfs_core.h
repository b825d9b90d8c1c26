/*
 * The filesystem in memory: nodes, directories, paths, open files. Plain C, no system calls but the
 * clock, so that it is tested and measured outside a grate; imfs.c and the on_*.c files put it
 * behind the system calls of other cages.
 *
 * Functions return a value >= 0 or the negative of an errno. Nothing here locks: whoever reads
 * holds the lock of lock.h for reading, whoever changes anything holds it for writing.
 */
#ifndef IMFS_CORE_H
#define IMFS_CORE_H

#include "imfs_types.h"

/*
 * A filesystem over another: nodes come about when they are first looked at, and what is changed is
 * noted. All of it is called with the lock held for writing, and blocks only for what lies below.
 * Where nothing else is said the result is 0 or an errno.
 */
struct imfs_below {
	int (*born)(struct imfs_node *n);
	void (*gone)(struct imfs_node *n);
	/* Names of an unlisted directory: all of them, or at least `name`, if that is not NULL. */
	int (*list)(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length);
	int (*know)(struct imfs *fs, struct imfs_node *n); /* attributes; -ENOENT: it is not there any more */
	int (*xattrs)(struct imfs *fs, struct imfs_node *n);
	int (*readable)(struct imfs_node *n); /* whether contents can be had */
	/* Before memory is taken for contents, or a name is made: gives some back, which is any clean
	 * chunk's. An errno: nothing more is kept. */
	int (*room)(struct imfs *fs);
	/* How many bytes at `off`, at most `max`, are in a file of the kernel's as they are here, and
	 * that file. 0: they have to be loaded. The lock is held for reading at least. */
	size_t (*straight)(const struct imfs_node *n, int64_t off, size_t max, int *fd);
	int (*whole)(
	    struct imfs_node *n); /* a file of the kernel's with all of the contents, which is the caller's; -1: none */
	/* The contents of a chunk of a lazy file, as much as there is room for. */
	int (*fill)(struct imfs_node *n, uint64_t index, uint8_t *bytes, uint32_t room);
	/* Where the next data or the next hole of a lazy file is, from an offset before its end. The
	 * end is a hole; -ENXIO: no data. */
	int64_t (*seek)(struct imfs_node *n, int64_t off, bool hole);
	int (*cut)(struct imfs *fs, struct imfs_node *n, int64_t size); /* before the file becomes shorter */
	void (*space)(uint64_t *blocks, uint64_t *left); /* of the disk below, in blocks of 4 KiB */
	uint64_t (*blocks)(const struct imfs_node *n); /* as stat(2) says it */
	void (*changed)(struct imfs_node *n); /* attributes, names, or contents */
	void (*wrote)(struct imfs_node *n, struct imfs_chunk *c, uint16_t blocks); /* these are to be written now */
	void (*mapped)(struct imfs_node *n); /* clients may write to its backing from now on */
	void (*unnamed)(struct imfs_entry *e); /* a name is about to go */
	int (*sync)(void); /* no lock is held: what was changed is kept when this returns */
};
extern const struct imfs_below *imfs_below; /* NULL: all that there is is in memory */

static inline void imfs_changed(struct imfs_node *n);

/* The size that a process may give a file. */
static inline int64_t imfs_largest(const struct imfs_process *p)
{
	return p->limited && p->largest < (uint64_t)IMFS_MAX_SIZE ? (int64_t)p->largest : IMFS_MAX_SIZE;
}

/* node.c */
int imfs_init(struct imfs *fs, const char *prefix, uint64_t limit, const struct imfs_cred *owner);
struct timespec imfs_now(void);
struct imfs_node *imfs_node_new(
    struct imfs *fs, uint32_t mode, const struct imfs_cred *cred, const struct imfs_node *parent);
/* The permission bits of a new file that is not a directory. */
uint32_t imfs_new_mode(const struct imfs_process *p, const struct imfs_node *dir, uint32_t mode);
void imfs_node_hold(struct imfs_node *n);
void imfs_node_drop(struct imfs *fs, struct imfs_node *n); /* gives back one reference */
void imfs_node_settle(struct imfs *fs, struct imfs_node *n); /* frees it if nothing refers to it */
int imfs_charge(struct imfs *fs, uint64_t bytes); /* 0 or -ENOSPC */
int imfs_may(const struct imfs_node *n, const struct imfs_cred *cred, int mask); /* R_OK|W_OK|X_OK: 0 or -EACCES */
bool imfs_in_group(const struct imfs_cred *cred, uint32_t gid);
/* Whether one may do what takes the owner, or a capability. */
static inline bool imfs_owns(const struct imfs_node *n, const struct imfs_cred *cred)
{
	return cred->uid == n->uid || (cred->caps & IMFS_FOWNER);
}

/* data.c */
/* Brings the chunk at `off` of a lazy file, if it is not there. */
int imfs_data_load(struct imfs *fs, struct imfs_node *n, int64_t off);
bool imfs_data_there(
    const struct imfs_node *n, int64_t off, uint64_t length); /* nothing has to be loaded to read this */
int imfs_data_zero(struct imfs *fs, struct imfs_node *n, int64_t off,
    int64_t length); /* of a lazy file: what is below must not show */
void imfs_data_drop(struct imfs *fs, struct imfs_node *n); /* clean chunks of a lazy file, which can be loaded again */
/* The bytes at `off`, `*run` of them in one piece, at most `max`. NULL: a hole. */
static inline uint8_t *imfs_data_run(const struct imfs_node *n, int64_t off, size_t max, size_t *run);
__attribute__((cold, noinline)) uint8_t *imfs_data_run_slow(
    const struct imfs_node *n, int64_t off, size_t max, size_t *run);
uint8_t *imfs_data_reserve(struct imfs *fs, struct imfs_node *n, int64_t off, size_t want, size_t *run);
int imfs_data_resize(struct imfs *fs, struct imfs_node *n, int64_t size); /* to less it does not fail */
void imfs_data_punch(struct imfs *fs, struct imfs_node *n, int64_t off, int64_t length);
int64_t imfs_data_seek(struct imfs_node *n, int64_t off, bool hole);
int imfs_data_back(struct imfs *fs, struct imfs_node *n); /* moves the contents to a backing */
void imfs_data_free(struct imfs *fs, struct imfs_node *n);
/* Makes a backing, or one that is there, this long; it may move. 0 or an errno. Less does not
 * fail. And its end. */
extern int (*imfs_backing_fit)(struct imfs_backing *backing, uint64_t size);
extern void (*imfs_backing_end)(struct imfs_backing *backing);
/* Copies the first bytes of a file of the kernel's to a backing that is new, and closes it. 0 or
 * an errno. */
extern int (*imfs_backing_copy)(struct imfs_backing *backing, int fd, uint64_t size);

/* dir.c */
int imfs_dir_init(struct imfs_node *n, struct imfs_node *parent);
struct imfs_entry *imfs_dir_find(const struct imfs_node *dir, const char *name, size_t length);
int imfs_dir_add(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length, struct imfs_node *n);
/* The same for a name that was there before anybody looked: no time and no link count changes. */
int imfs_dir_put(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length, struct imfs_node *n);
void imfs_dir_drop(struct imfs *fs, struct imfs_entry *e);
void imfs_entry_leads(struct imfs_entry *e, struct imfs_node *n); /* to that from now on */
/* Whether all its names are here, or at least `name`. */
static inline int imfs_dir_list(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length)
{
	return dir->unlisted ? imfs_below->list(fs, dir, name, length) : 0;
}
void imfs_dir_remove(struct imfs *fs, struct imfs_node *dir, struct imfs_entry *e);
void imfs_dir_free(struct imfs *fs, struct imfs_node *n);
void imfs_dir_orphan(struct imfs_node *n); /* its last name is gone */
bool imfs_dir_above(const struct imfs_node *dir, const struct imfs_node *below);
int64_t imfs_getdents(struct imfs *fs, struct imfs_file *f, void *buffer, size_t size);
int imfs_node_path(const struct imfs *fs, const struct imfs_node *dir, char *path, size_t size); /* its length */

/* passes.c: paths below the prefix that lead outside. They are named before the first walk. */
int imfs_pass_add(struct imfs *fs, const char *path); /* absolute, without . and .., not the prefix */
bool imfs_passes(const struct imfs *fs, const struct imfs_node *dir, const char *name, size_t length);
bool imfs_is_passed(const struct imfs *fs, const char *path); /* it or a path above it */
bool imfs_holds_pass(const struct imfs *fs, const struct imfs_node *node); /* below it */
/* The directory of ours at a path without links. */
int imfs_come_back(struct imfs *fs, const char *path, struct imfs_node **node);

/* path.c: where a path leads. */
enum imfs_last { IMFS_NORMAL, IMFS_DOT, IMFS_DOTDOT, IMFS_ROOT };
struct imfs_at {
	bool outside; /* then `path` says where, absolute */
	bool entered; /* it was inside on the way: `path` differs from what the caller wrote */
	struct imfs_node *dir; /* where the last name is looked up */
	struct imfs_node *node; /* NULL: does not exist */
	enum imfs_last last;
	bool slash; /* something must be a directory: trailing slash */
	bool too_long; /* the walk failed, for its last name: the caller clears it before */
	uint16_t length;
	char name[IMFS_NAME + 1]; /* if it does not exist, or was asked for itself */
	char path[IMFS_PATH];
};
enum imfs_follow {
	IMFS_NAME_ITSELF, /* a name to be made or removed: the last one is never followed */
	IMFS_NOFOLLOW, /* the last one is not followed, unless a slash says it is a directory */
	IMFS_FOLLOW,
	IMFS_FOLLOW_OR_MAKE, /* open with O_CREAT: followed, unless a slash says it is a directory */
};
/* `start` is the directory for relative paths; NULL: outside, at start_path. That `path` is
 * shorter than IMFS_PATH is for the caller to see to. */
int imfs_walk(struct imfs *fs, const struct imfs_process *p, struct imfs_node *start, const char *start_path,
    const char *path, enum imfs_follow follow, struct imfs_at *at);
/* Flags that keep a walk from leading elsewhere: RESOLVE_* of openat2(2). Everything is cached.
 * Links outside are not seen, so not refused. */
#define IMFS_NO_XDEV       1u
#define IMFS_NO_MAGICLINKS 2u
#define IMFS_NO_SYMLINKS   4u
#define IMFS_BENEATH       8u
#define IMFS_IN_ROOT       16u
#define IMFS_SCOPED        (IMFS_BENEATH | IMFS_IN_ROOT)
int imfs_walk_within(struct imfs *fs, const struct imfs_process *p, struct imfs_node *start, const char *start_path,
    const char *path, enum imfs_follow follow, uint32_t resolve, struct imfs_at *at);

/* magic.c: what an outside path in /proc leads to here, by the process's descriptors and working
 * directory. NULL: nothing of ours. */
struct imfs_node *imfs_magic(const struct imfs_process *p, const char *path);
int64_t imfs_magic_fd(const struct imfs_process *p, const char *path,
    const char *folder); /* folder: "fd/", "fdinfo/". -1: no such name */
bool imfs_magic_cwd(const struct imfs_process *p, const char *path);

/* names.c */
int imfs_mkdir(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t mode);
int imfs_mknod(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t mode, uint64_t rdev);
int imfs_symlink(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, const char *target);
int imfs_link(struct imfs *fs, const struct imfs_process *p, struct imfs_node *from, const struct imfs_at *to);
int imfs_unlink(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at);
int imfs_rmdir(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at);
int imfs_rename(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *from, const struct imfs_at *to,
    unsigned flags);
int imfs_exists(const struct imfs_at *at); /* 0, -ENOENT or -ENOTDIR */
/* Puts a new node under the name of `at`. */
int imfs_create(
    struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t mode, struct imfs_node **made);

/* attr.c */
void imfs_stat(const struct imfs_node *n, struct imfs_stat *st);
int imfs_chmod(struct imfs_node *n, const struct imfs_cred *cred, uint32_t mode);
int imfs_chown(struct imfs_node *n, const struct imfs_cred *cred, uint32_t uid, uint32_t gid);
int imfs_utimens(struct imfs_node *n, const struct imfs_cred *cred, const struct timespec times[2]);
void imfs_as_real(struct imfs_cred *cred); /* as access(2) has it */
int imfs_access(const struct imfs_node *n, const struct imfs_process *p, int mask, bool effective);
int imfs_truncate(struct imfs *fs, struct imfs_node *n, const struct imfs_process *p, int64_t size);
void imfs_kill_suid(struct imfs_node *n, const struct imfs_cred *cred);

/* fifo.c. The functions return the bytes of data or of room in one piece; 0: the end, -EAGAIN:
 * nothing yet, -EPIPE: no readers. */
int imfs_fifo_may_open(const struct imfs_node *n, uint32_t flags); /* 0 or -ENXIO */
int imfs_fifo_open(struct imfs *fs, struct imfs_file *f);
void imfs_fifo_close(struct imfs *fs, struct imfs_file *f);
bool imfs_fifo_alone(const struct imfs_file *f); /* it was opened to wait for somebody at the other end */
int64_t imfs_fifo_data(const struct imfs_fifo *fifo, const uint8_t **from);
void imfs_fifo_took(struct imfs_fifo *fifo, uint32_t length);
int64_t imfs_fifo_room(struct imfs_fifo *fifo, uint64_t whole, uint8_t **to); /* `whole` is how much is to be written */
void imfs_fifo_put(struct imfs_fifo *fifo, uint32_t length);
/* Called after each change, and at the end with `ready`; nothing if not set. The lock is held
 * for writing. */
extern void (*imfs_fifo_changed)(struct imfs_fifo *fifo);
extern void (*imfs_fifo_ended)(int ready);

/* xattr.c */
int imfs_setxattr(struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, const char *name,
    const void *value, size_t size, int flags);
int64_t imfs_getxattr(struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, const char *name,
    const void **value); /* its size */
int imfs_removexattr(struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, const char *name);
int64_t imfs_listxattr(struct imfs *fs, struct imfs_node *n, const struct imfs_cred *cred, char *to,
    size_t size); /* as listxattr(2): what it takes, with size 0 */
/* Adds an attribute that the file does not have yet, without asking who may do that. */
int imfs_xattr_add(struct imfs *fs, struct imfs_node *n, const char *name, const void *value, size_t size);
void imfs_xattr_free(struct imfs *fs, struct imfs_node *n);

/* file.c */
int imfs_open_flags(uint32_t flags); /* 0 or -EINVAL; to be asked before the path is looked at */
enum imfs_follow imfs_open_follow(uint32_t flags);
int imfs_open(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t flags, uint32_t mode,
    struct imfs_file **made);
struct imfs_file *imfs_file_new(struct imfs *fs, struct imfs_node *n, uint32_t flags);
void imfs_file_drop(struct imfs *fs, struct imfs_file *f);
int64_t imfs_lseek(struct imfs_file *f, int64_t off, int whence);
int imfs_fallocate(
    struct imfs *fs, struct imfs_file *f, const struct imfs_process *p, int mode, int64_t off, int64_t length);
void imfs_wrote(struct imfs_node *n, const struct imfs_cred *cred, int64_t end, struct timespec now);
static inline void imfs_was_read(struct imfs_file *f);
__attribute__((cold, noinline)) void imfs_move_atime(struct imfs_file *f);
/* Open, and to be read and written as a fifo. */
static inline bool imfs_is_fifo(const struct imfs_file *f)
{
	return S_ISFIFO(f->node->mode) && !(f->flags & O_PATH);
}
int imfs_may_read(const struct imfs_file *f); /* 0, -EBADF, -EISDIR */
int imfs_may_write(const struct imfs_file *f); /* 0, -EBADF */
/* Between buffers in our own memory; grates copy between cages themselves. */
int64_t imfs_pread(struct imfs *fs, struct imfs_file *f, void *to, size_t length, int64_t off);
int64_t imfs_pwrite(
    struct imfs *fs, const struct imfs_process *p, struct imfs_file *f, const void *from, size_t length, int64_t off);

/* fds.c */
static inline struct imfs_file *imfs_fd(const struct imfs_fds *fds, uint64_t fd)
{
	return (uint32_t)fd < fds->room ? fds->files[(uint32_t)fd] : NULL;
}
int imfs_fds_init(struct imfs_fds *fds); /* once: 0 or -ENOMEM */
int imfs_fd_room(struct imfs_fds *fds, uint32_t fd); /* makes room for a number: 0 or -EMFILE */
void imfs_fd_set(
    struct imfs *fs, struct imfs_process *p, uint32_t fd, struct imfs_file *f, bool cloexec); /* takes a reference */
void imfs_fd_clear(struct imfs *fs, struct imfs_process *p, uint32_t fd);
struct imfs_process *imfs_process_new(void);
int imfs_process_copy(struct imfs_process *p, const struct imfs_process *parent);
void imfs_process_exec(struct imfs *fs, struct imfs_process *p);
void imfs_process_clear(struct imfs *fs, struct imfs_process *p); /* closes everything */
void imfs_set_cwd(struct imfs *fs, struct imfs_process *p, struct imfs_node *dir, char *outside_path);

static inline void imfs_changed(struct imfs_node *n)
{
	if (n->under)
		imfs_below->changed(n);
}

static inline uint8_t *imfs_data_run(const struct imfs_node *n, int64_t off, size_t max, size_t *run)
{
	uint64_t index = (uint64_t)off / IMFS_CHUNK;
	uint32_t in = (uint32_t)((uint64_t)off % IMFS_CHUNK);
	const struct imfs_chunk *c;

	/* Without holes before it, chunk i is at place i. */
	if (index < n->data.count && (c = &n->data.chunks[index])->index == index && in + (uint64_t)max <= c->room) {
		*run = max;
		return c->data + in;
	}
	return imfs_data_run_slow(n, off, max, run);
}

static inline bool imfs_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec <= b->tv_nsec);
}

/* Read since it was changed. */
static inline bool imfs_is_fresh(const struct imfs_node *n)
{
	return !imfs_older(&n->atime, &n->mtime) && !imfs_older(&n->atime, &n->ctime);
}

/* Like a mount with relatime: only the first read after a change moves the access time. */
static inline void imfs_was_read(struct imfs_file *f)
{
	if (!imfs_is_fresh(f->node))
		imfs_move_atime(f);
}

/* locks.c: -EAGAIN means that somebody else holds it, -ENOLCK that the file has too many. */
int imfs_lock(struct imfs_node *n, const struct imfs_lock *want, bool unlock);
bool imfs_lock_conflict(const struct imfs_node *n, const struct imfs_lock *want, struct imfs_lock *found);
void imfs_locks_drop(struct imfs_node *n, const void *owner);
/* Begins to wait for what imfs_lock refused: imfs_wake is called for the waiter's word when
 * something was given up. -EDEADLK if those who hold it wait for us: fcntl(2). The node stays as
 * long. */
int imfs_lock_wait(struct imfs_node *n, const struct imfs_lock *want, struct imfs_waiter *w);
void imfs_lock_stop(struct imfs_waiter *w);
/* Wakes the threads that sleep on a word that has changed; may be NULL. Called with the lock
 * held for writing. */
extern void (*imfs_wake)(uint32_t *word);

#endif
