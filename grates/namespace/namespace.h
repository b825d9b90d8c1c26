/*
 * The namespace grate: which calls of the program enter the grates between its `%{` and `%}`.
 *
 * A descriptor is inside if a call that entered made it, or if it is a copy of one that is. A path is inside if it leads to
 * a prefix or below. What a client has is kept in words of its own that a call reads without a lock.
 */
#ifndef NAMESPACE_H
#define NAMESPACE_H

#include <errno.h>
#include <limits.h>
#include <lind/compose.h>
#include <lind/path_table.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CLIENT_AT_FDCWD (-100)

enum { INSIDE = 1, HELD = 2, WORD_STEP = 4, WORD_COUNT = 0x7ffffffc };

struct client {
	/* A word for each of LIND_FDS descriptors: INSIDE or HELD, and how often it was set. The kernel looks here before it enters on_fd,
	 * and enters it if there is LIND_FD_ASK, which stands where threads change what is outside. */
	_Atomic uint32_t *fds;
	_Atomic uint32_t fds_end;	/* above all that was ever inside */
	atomic_bool mapped;		/* has mapped a file that is inside */
	atomic_bool owns;		/* has or had descriptors inside */
	atomic_bool threads;		/* had more than one since it was started */
	atomic_uint making, moving;	/* calls under way that may make a descriptor inside; the second do not wait */
	pthread_mutex_t lock;		/* of what follows */
	bool cwd_inside;
	char *cwd;			/* where, if it is known */
	struct client *next_free;
};

/* What of the options decides at all. */
extern bool by_path, by_net, by_fd;

/* clients.c */
extern const struct lind_lifecycle lifecycle;
void client_entered(void *client, uint64_t cage);
void client_cwd(struct client *client, bool inside, const char *path);

/* fds.c */
const char *add_start_fds(const char *value);
void mark_start_fds(struct client *client);
void fd_mark(struct client *client, uint64_t fd, bool inside);
void fds_init(struct client *client);
void fds_route(struct client *client, uint64_t cage);
/* A fork: before it is made, by the thread that makes it; if it fails; and when the child is there, which does not run yet. */
void fds_before_copy(const struct client *from);
void fds_not_copied(void);
void fds_copy(struct client *to, uint64_t cage, const struct client *from);
void fds_forget(struct client *client);

static inline uint32_t arg32(const struct lind_call *c, int i)
{
	return (uint32_t)c->args[i].value;
}

static inline uint32_t fd_word(const struct client *client, uint32_t fd)
{
	return client && fd < LIND_FDS ? atomic_load_explicit(&client->fds[fd], memory_order_acquire) : 0;
}

/* What nobody here knows, a descriptor of no cage, of none of our clients, or beyond the table, is not let past. */
static inline bool fd_inside(struct lind_arg fd)
{
	struct client *client = fd.cage ? lind_client(fd.cage) : NULL;

	return !client || (uint32_t)fd.value >= LIND_FDS || fd_word(client, (uint32_t)fd.value) & INSIDE;
}

static inline int64_t enter(const struct lind_call *c)
{
	return lind_enter(0, c);
}

void fd_set_word(struct client *client, uint32_t fd, uint32_t bits);

/* hold.c */
int64_t on_clone(const struct lind_call *c);
void threads_end(struct client *client);
void making_begins(struct client *client);
void making_ends(struct client *client);
void moving_begins(struct client *client);
void moving_ends(struct client *client);
/* Past the grates inside, by these arguments' files as they are now, if threads may change them. */
int64_t go_past(const struct lind_call *c, unsigned args);
/* A copy of ours of what is at a number, and whether that is inside. 0, or the negative of an errno. */
int hold(const struct client *client, struct lind_arg fd, struct lind_arg *held, bool *inside);
void release(struct lind_arg held);

int64_t pass(const struct lind_call *c, bool inside);
int64_t on_enter(const struct lind_call *c);
int64_t on_fd(const struct lind_call *c);
int64_t on_fds(const struct lind_call *c);
int64_t on_accept(const struct lind_call *c);
int64_t on_made(const struct lind_call *c);
int64_t on_pair(const struct lind_call *c);
int64_t on_close(const struct lind_call *c);
int64_t on_close_range(const struct lind_call *c);
int64_t on_dup(const struct lind_call *c);
int64_t on_dup2(const struct lind_call *c);
int64_t on_fcntl(const struct lind_call *c);
int64_t on_poll(const struct lind_call *c);
int64_t on_select(const struct lind_call *c);
int64_t on_mmap(const struct lind_call *c);
int64_t on_memory(const struct lind_call *c);

/* messages.c */
void adopt(const struct lind_call *c, int arg);
int64_t on_send(const struct lind_call *c);
int64_t on_send_many(const struct lind_call *c);
int64_t on_receive(const struct lind_call *c);
int64_t on_receive_many(const struct lind_call *c);

/* where.c */
struct where {
	char text[PATH_MAX];	/* what the client wrote, or where it leads, for who gets the call */
	char path[PATH_MAX];	/* where it leads; empty if that is not known in words */
	bool inside;
	bool rewritten;		/* `text` is not what the client wrote any more */
	bool start_only;	/* it is the directory argument itself: there is no text */
};

const char *add_prefix(const char *value);
int look(const struct lind_call *c, int dir, int path, bool follow, struct where *w);
/* The same for a text that is there already. */
int look_at(const struct lind_call *c, int dir, bool follow, struct where *w);
bool above_a_prefix(const char *path);
bool below_a_prefix(const char *path);

/* paths.c */
const char *set_by_text(const char *value);
int64_t on_path(const struct lind_call *c);
int64_t on_chdir(const struct lind_call *c);
int64_t on_fchdir(const struct lind_call *c);
int64_t on_getcwd(const struct lind_call *c);

/* net.c */
const char *add_address(const char *value);
const char *add_port(const char *value);
int64_t on_address(const struct lind_call *c);
int socket_name(const struct lind_call *c, void *name, uint64_t *length, size_t room);

/* choose.c */
const char *add_calls(const char *value);
const char *add_calls_file(const char *value);
lind_handle_fn *choose(uint32_t nr);

#endif
