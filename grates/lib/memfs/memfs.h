/* A file system in memory behind the calls of clients: what its files share. The file system itself
 * is imfs_core.h. */
#ifndef MEMFS_H
#define MEMFS_H

#include <lind/raw.h>
#include <pthread.h>
#include <signal.h>
#include "imfs_core.h"
#include "sync.h"
#include "watch.h"

extern struct imfs fs;

/* A file of ours that a client has mapped shared. */
struct mapping {
	struct mapping *next;
	struct imfs_node *node;
	uint64_t start, end;
	bool writable;
};

/* Memory of clients goes back to clients only: a call that names another cage may have looked
 * its client up before that ended. The field `cage`, read under the lock, then shows the owner. */
struct client {
	uint64_t cage;   /* 0: of none, any more or yet */
	struct imfs_process p;
	struct mapping *mappings;
	struct imfs_node *program, *next_program; /* what it runs, if that is ours; and what it will after exec */
	bool threaded;   /* it had a second thread, whose calls come between others */
	pthread_mutex_t numbers;
	struct client *next_free;
};

/* Defined beside `main`: the first program has ended. */
void first_ended(void);

/* clients.c */
extern const struct lind_lifecycle lifecycle;
extern struct client nobody; /* no descriptors, no directory, no rights */
static inline struct client *client_of(uint64_t cage)
{
	struct client *client = lind_client(cage);

	return client ? client : &nobody;
}
/* The client whose rights and limits count in a call on a descriptor of `holder`: a grate may
 * hold it for the client. */
static inline struct client *acting(const struct lind_call *c, struct client *holder)
{
	return c->args[0].cage == c->target ? holder : client_of(c->target);
}
/* The file of ours behind a descriptor of a client that was looked up by the cage it names. The
 * lock is held. */
static inline struct imfs_file *fd_of(const struct client *client, struct lind_arg fd)
{
	return client->cage == fd.cage ? imfs_fd(&client->p.fds, fd.value) : NULL;
}
int64_t on_umask(const struct lind_call *c);
/* For a client with threads: its numbers here and in the kernel change together, or not until
 * numbers_release. Nothing is looked up meanwhile, because a look-up may wait for a client that
 * is being born. Returns the argument for numbers_release. */
static inline struct client *numbers_hold(struct client *client)
{
	if (!__atomic_load_n(&client->threaded, __ATOMIC_RELAXED))
		return NULL;
	pthread_mutex_lock(&client->numbers);
	return client;
}
static inline void numbers_release(struct client *held)
{
	if (held)
		pthread_mutex_unlock(&held->numbers);
}
int64_t on_set_ids(const struct lind_call *c);

/* look.c: a path argument of a call. */
struct look {
	struct client *client;  /* the target of the call */
	struct client *from;  /* whose directory a relative path starts from */
	uint32_t resolve;  /* IMFS_BENEATH and its kind */
	struct imfs_at at;
	char text[IMFS_PATH];
	char start[64];   /* of a relative path, where that is a directory of /proc; else empty */
};
#define OUTSIDE      1
#define LOOK_AS_REAL (1u << 31) /* beside those: directories are searched by the real ids, for access(2) */
/* Reads and walks the path in argument `path`, relative to the directory in argument `dir` or,
 * if that is -1, to the working directory. 0: inside, and the write lock is held. OUTSIDE or an
 * error: it is not. */
int look(const struct lind_call *c, int dir, int path, enum imfs_follow follow, bool may_be_empty, struct look *l);
/* The same for openat2. */
int look_within(const struct lind_call *c, int dir, int path, enum imfs_follow follow, bool may_be_empty,
    uint32_t resolve, struct look *l);
/* The same for a path that has been read, relative to the target's working directory. */
int look_text(const struct lind_call *c, const char *text, enum imfs_follow follow, struct look *l);
/* The value to return when look did not return 0. */
int64_t look_elsewhere(const struct lind_call *c, int path, int looked, const struct look *l);
/* For two paths: both are looked up under one hold of the lock. */
int look_two(const struct lind_call *c, int dir1, int path1, enum imfs_follow follow1, bool may_be_empty, int dir2,
    int path2, struct look *l1, struct look *l2);
int64_t look_two_elsewhere(
    const struct lind_call *c, int path1, int path2, int looked, const struct look *l1, const struct look *l2);
/* Gives the lock back and hands `r` on. */
static inline int64_t done(int64_t r)
{
	imfs_write_unlock();
	return r;
}
/* on_clone.c: FICLONE and its like, of a file of ours. */
int64_t on_clone_request(const struct lind_call *c, uint32_t request);
int make_directories(const struct imfs_process *p, const char *path);

/* on_data.c */
#define MAX_TRANSFER 0x7ffff000u
int64_t data_to_client(struct imfs_file *f, struct lind_arg to, uint64_t length, int64_t off);
int64_t data_from_client(
    const struct imfs_process *p, struct imfs_file *f, struct lind_arg from, uint64_t length, int64_t off);
void pos_lock(struct imfs_file *f);
void pos_unlock(struct imfs_file *f);

/* on_open.c: a descriptor number that the kernel gives the client, for an open file of ours.
 * `stands` is what the kernel has there. */
void holder_init(void); /* before the first client */
int64_t give_fd(uint64_t cage, struct client *client, struct imfs_file *f, int stands, bool cloexec);

extern int holder; /* the kernel's file behind the numbers of our files */

/* on_fd.c */
/* Whether the descriptor in argument `i` is ours; no lock is held afterwards. */
bool fd_ours(const struct lind_call *c, int i);
/* The file behind it, with the write lock held; NULL: somebody else's, and it is not. */
struct imfs_file *fd_take(const struct lind_call *c, int i, struct client **client);

/* on_lock.c: the commands of fcntl that lock ranges. */
int64_t record_lock(const struct lind_call *c, uint32_t cmd);

/* travel.c: files on their way in messages. */
int travel_begins(
    struct client *client, struct lind_arg fd); /* a descriptor of the grate's to send instead, or an errno */
int travel_ends(
    uint64_t cage, struct client *client, uint32_t number, bool cloexec); /* of what has arrived at that number */
void travel_settle(void); /* lets go of what has arrived everywhere; no lock is held */

/* on_socket.c */
/* Makes the name of a message that is sent, in our memory with room for any, what the kernel
 * knows it by. 1 if it is another now, 0, or an error. */
int address_send(const struct lind_call *c, void *name, uint32_t *length);
void address_restore(struct lind_arg address, uint64_t room, struct lind_arg length_at);
int64_t recvmsg_named(const struct lind_call *c);

/* on_fifo.c */
void fifo_init(void);
bool fifos_open(void); /* whether any is */
/* Waits for the other end, if the fifo was opened to do that; then as give_fd. */
int64_t fifo_opened(const struct lind_call *c, struct client *client, struct imfs_file *f, bool cloexec);
/* read and write and their kind of a fifo or a watcher, of the descriptor in argument 0; the
 * memory is that of argument 1. */
static inline bool is_stream(const struct imfs_file *f)
{
	return imfs_is_fifo(f) || f->node->watcher;
}
int64_t stream_io(const struct lind_call *c, const struct iovec *iov, uint64_t count, bool put, bool wait);

/* on_watch.c */
void watchers_init(void);
int64_t watcher_read(const struct lind_call *c, const struct iovec *iov, uint64_t count, bool wait);
int64_t watcher_waits(struct imfs_watcher *w); /* how many bytes wait to be read; the lock is held for writing */

/* on_proc.c: `path` is where a look that ended outside came to, and `client` the call's target. */
int64_t proc_readlink(
    const struct lind_call *c, const struct client *client, const char *path, struct lind_arg to, uint64_t size);
uint32_t proc_link_mode(const struct lind_call *c, const struct client *client, const char *path);
int proc_info(
    const struct lind_call *c, struct client *client, const char *path, uint32_t flags, struct imfs_file **made);

/* on_limit.c */
void learn_limit(uint64_t cage, struct client *client);
/* A signal as the kernel sends for what a thread does, to the client's thread that is being
 * served. */
void signal_thread(uint64_t cage, int number);
/* Hands on the result of a call that makes files larger, and sends SIGXFSZ if that says that the
 * limit was met. No lock is held. */
static inline int64_t sized(const struct lind_call *c, const struct client *client, int64_t r)
{
	if (r == -EFBIG && client->p.limited)
		signal_thread(c->target, SIGXFSZ);
	return r;
}

/* Passes on a result. If the file is open with O_SYNC or O_DSYNC, the written data has been
 * stored then. No lock is held. */
static inline int64_t kept(int64_t r, uint32_t flags)
{
	int failed = r > 0 && flags & O_DSYNC && imfs_below ? imfs_below->sync() : 0;

	return failed ? failed : r;
}

/* on_exec.c: who runs a file of ours. The lock is held. */
void runs(struct imfs_node **program, struct imfs_node *n);
void runs_no_more(struct imfs_node **program);
/* The program of the child that this thread's spawn has made: the caller owns it now. NULL if it
 * is none of our files. */
struct imfs_node *spawned_program(void);
/* Starts the next program of the line: spawn, as our own call. */
int64_t start_first(const struct lind_call *c);

/* on_map.c */
void backing_init(void);
void mappings_copy(struct client *to, const struct client *from);
void mappings_free(struct client *client);

/* The handlers. */
int64_t on_open(const struct lind_call *), on_openat(const struct lind_call *), on_openat2(const struct lind_call *),
    on_creat(const struct lind_call *);
int64_t on_read(const struct lind_call *), on_write(const struct lind_call *), on_pread64(const struct lind_call *),
    on_pwrite64(const struct lind_call *), on_readv(const struct lind_call *), on_writev(const struct lind_call *),
    on_preadv(const struct lind_call *), on_pwritev(const struct lind_call *), on_preadv2(const struct lind_call *),
    on_pwritev2(const struct lind_call *), on_lseek(const struct lind_call *), on_sendfile(const struct lind_call *),
    on_copy_file_range(const struct lind_call *), on_splice(const struct lind_call *), on_tee(const struct lind_call *);
int64_t on_close(const struct lind_call *), on_close_range(const struct lind_call *), on_dup(const struct lind_call *),
    on_dup2(const struct lind_call *), on_dup3(const struct lind_call *), on_fcntl(const struct lind_call *),
    on_flock(const struct lind_call *), on_ioctl(const struct lind_call *), on_ftruncate(const struct lind_call *),
    on_fallocate(const struct lind_call *), on_sync(const struct lind_call *),
    on_sync_file_range(const struct lind_call *), on_fadvise64(const struct lind_call *),
    on_getdents64(const struct lind_call *);
int64_t on_fstat(const struct lind_call *), on_stat(const struct lind_call *), on_lstat(const struct lind_call *),
    on_newfstatat(const struct lind_call *), on_statx(const struct lind_call *), on_access(const struct lind_call *),
    on_faccessat(const struct lind_call *), on_faccessat2(const struct lind_call *), on_chmod(const struct lind_call *),
    on_fchmod(const struct lind_call *), on_fchmodat(const struct lind_call *), on_fchmodat2(const struct lind_call *),
    on_chown(const struct lind_call *), on_lchown(const struct lind_call *), on_fchown(const struct lind_call *),
    on_fchownat(const struct lind_call *), on_truncate(const struct lind_call *),
    on_utimensat(const struct lind_call *), on_utime(const struct lind_call *), on_utimes(const struct lind_call *),
    on_futimesat(const struct lind_call *), on_statfs(const struct lind_call *), on_fstatfs(const struct lind_call *);
int64_t on_setxattr(const struct lind_call *), on_lsetxattr(const struct lind_call *),
    on_fsetxattr(const struct lind_call *), on_getxattr(const struct lind_call *),
    on_lgetxattr(const struct lind_call *), on_fgetxattr(const struct lind_call *),
    on_listxattr(const struct lind_call *), on_llistxattr(const struct lind_call *),
    on_flistxattr(const struct lind_call *), on_removexattr(const struct lind_call *),
    on_lremovexattr(const struct lind_call *), on_fremovexattr(const struct lind_call *);
int64_t on_mkdir(const struct lind_call *), on_mkdirat(const struct lind_call *), on_rmdir(const struct lind_call *),
    on_unlink(const struct lind_call *), on_unlinkat(const struct lind_call *), on_rename(const struct lind_call *),
    on_renameat(const struct lind_call *), on_renameat2(const struct lind_call *), on_link(const struct lind_call *),
    on_linkat(const struct lind_call *), on_symlink(const struct lind_call *), on_symlinkat(const struct lind_call *),
    on_readlink(const struct lind_call *), on_readlinkat(const struct lind_call *), on_mknod(const struct lind_call *),
    on_mknodat(const struct lind_call *), on_chdir(const struct lind_call *), on_fchdir(const struct lind_call *),
    on_getcwd(const struct lind_call *);
int64_t on_bind(const struct lind_call *), on_connect(const struct lind_call *), on_sendto(const struct lind_call *),
    on_named(const struct lind_call *), on_poll(const struct lind_call *), on_recvfrom(const struct lind_call *),
    on_recvmsg(const struct lind_call *), on_recvmmsg(const struct lind_call *), on_sendmsg(const struct lind_call *),
    on_sendmmsg(const struct lind_call *);
int64_t on_mmap(const struct lind_call *), on_munmap(const struct lind_call *), on_msync(const struct lind_call *),
    on_execve(const struct lind_call *), on_execveat(const struct lind_call *);
int64_t on_inotify_init(const struct lind_call *), on_inotify_init1(const struct lind_call *),
    on_inotify_add_watch(const struct lind_call *), on_inotify_rm_watch(const struct lind_call *);
int64_t on_limit(const struct lind_call *), on_clone(const struct lind_call *);

#endif
