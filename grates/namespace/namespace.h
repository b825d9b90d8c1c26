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

enum { INSIDE = 1, HELD = 2, LETTING = 4, WORD_STEP = 8, WORD_COUNT = 0x7ffffff8 };

#define AT_WORK 64

struct client {
	_Atomic uint64_t cage;		/* 0 between two of them */
	/* A word for each of LIND_FDS descriptors: INSIDE or HELD, LETTING, and the stamp of its last change. The kernel looks here before it enters on_fd,
	 * and enters it if there is LIND_FD_ASK, which stands where threads change what is outside, and where what it is decides and is not known. */
	_Atomic uint32_t *fds;
	_Atomic uint32_t fds_end;	/* above all that was ever inside */
	_Atomic uint32_t fds_seen;	/* above all that was ever made, where what they are decides */
	_Atomic uint32_t stamp;		/* of the last change of a word, which holds it */
	atomic_bool mapped;		/* has mapped a file that is inside */
	atomic_bool owns;		/* has or had descriptors inside */
	atomic_bool threads;		/* had more than one since it was started */
	atomic_uint making, moving;	/* calls under way that may make a descriptor inside; the second do not wait */
	_Atomic uint32_t at_work[AT_WORK], tickets;	/* a ticket for each of them, or 0; WAITS if it may wait for long */
	atomic_uint crowd;		/* those for which there was no place */
	atomic_uint letting, frozen;	/* calls under way that let go of numbers; and those during which nobody may */
	pthread_mutex_t lock;		/* of what follows, and while somebody else marks what matches */
	bool cwd_inside;
	char *cwd;			/* where, if it is known */
	struct client *next_free, *next;	/* among those without a cage; among all */
};

/* What of the options decides at all. */
extern bool by_path, by_net, by_fd;
/* Whether calls are listed. */
extern bool by_call;
/* Part of by_fd: kinds or flags of descriptors; and flags that may change. */
extern bool by_property, flags_change;

/* clients.c */
extern const struct lind_lifecycle lifecycle;
void client_entered(void *client, uint64_t cage);
void client_cwd(struct client *client, bool inside, const char *path);
/* `end` is above all descriptors that it may have. */
void each_client(void (*one)(struct client *client, uint32_t end));

/* fds.c, words.c */
const char *add_start_fds(const char *value);
void mark_start_fds(struct client *client);
void fd_mark(struct client *client, uint64_t fd);	/* as inside */
void fds_init(struct client *client);
void fds_route(struct client *client, uint64_t cage);
/* A fork: before it is made, by the thread that makes it; if it fails; and when the child is there, which does not run yet. */
void fds_before_copy(const struct client *from);
void fds_not_copied(void);
void fds_copy(struct client *to, uint64_t cage, const struct client *from);
void fds_forget(struct client *client);
/* Above all that were ever inside or looked at. */
uint32_t fds_end(const struct client *client);

static inline uint32_t fd_word(const struct client *client, uint32_t fd)
{
	return client && fd < LIND_FDS ? atomic_load_explicit(&client->fds[fd], memory_order_acquire) : 0;
}

/* By what it is, where that decides and nobody has looked yet: a clamp in a clamp does not see descriptors come about. */
bool fd_look(struct client *client, uint32_t fd);

/* What nobody here knows, a descriptor of no cage, of none of our clients, or beyond the table, is not let past. */
static inline bool fd_inside(struct lind_arg fd)
{
	struct client *client = fd.cage ? lind_client(fd.cage) : NULL;
	uint32_t word = fd_word(client, (uint32_t)fd.value);

	if (!client || (uint32_t)fd.value >= LIND_FDS || word & INSIDE)
		return true;
	return by_property && !(word & HELD) && fd_look(client, (uint32_t)fd.value);
}

static inline int64_t enter(const struct lind_call *c)
{
	return lind_enter(0, c);
}

void fd_set_word(struct client *client, uint32_t fd, uint32_t bits);
/* Of a number that nothing is known about. */
uint32_t unknown_word(void);

/* Before a call that makes a descriptor outside; and after it: what is at the number is outside, unless it has got another file since. */
uint32_t fd_since(const struct client *client);
void fd_outside(struct client *client, uint64_t fd, uint32_t since);
/* The same of a call that may have more to say, which others wait for. */
void fd_outside_of_several(struct client *client, uint64_t fd, uint32_t since);
/* By what it is, where that decides: a number that has just got a file outside is inside after all. */
bool fd_made_outside(struct client *client, uint32_t fd);

/* Before the file at a number goes: nobody may take what comes there for it. One at a time, or they would not know each other's stamps. `mine` is the word
 * then, or 0 if there are no threads. False if a signal comes while another one is at it. */
bool let_go(struct client *client, uint32_t fd, uint32_t *mine);
/* Afterwards, with what the number has now. If it has been given again and marked meanwhile, that stays, and the result is false. */
bool has_let_go(struct client *client, uint32_t fd, uint32_t mine, uint32_t bits);

/* hold.c */
int64_t on_clone(const struct lind_call *c);
void threads_end(struct client *client);
void calls_ended(struct client *client);	/* all its threads have ended, or all but one */
void making_begins(struct client *client);
void waiting_begins(struct client *client);	/* the same, of a call that may wait for somebody else */
void making_ends(struct client *client);
void moving_begins(struct client *client);
void moving_ends(struct client *client);
/* A call that lets go of numbers of `client`, which may be NULL. It waits while they are frozen: false if a signal comes meanwhile. */
bool letting_begins(struct client *client);
void letting_ends(struct client *client);
/* Nothing is let go of until fds_thaw: 0, or -EINTR if a signal comes while somebody is at it. */
int fds_freeze(struct client *client);
void fds_thaw(struct client *client);
/* Waits until those who may make a descriptor inside have ended, but for the calling thread. Whether they have. */
bool others_ended(struct client *client);
/* Of the calling thread's call nothing is left that may make one: two that doubt do not wait for each other. */
void only_doubts(struct client *client);
void wait_a_moment(int round);
/* The same, of a call that may wait for as long as others are at it: false when a signal is to be acted on. */
bool wait_for_others(const struct client *client, int round);
/* While they are frozen: whether what is at a number of `cage` is inside, or -EBADF. */
int look_at_number(const struct client *client, struct lind_arg fd);
/* Past the grates inside, by these arguments' files as they are now, if threads may change them. */
int64_t go_past(const struct lind_call *c, unsigned args);
/* A copy of ours of what is at a number, and whether that is inside. 0, or the negative of an errno. */
int hold(struct client *client, struct lind_arg fd, struct lind_arg *held, bool *inside);
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

/* kinds.c */
struct stat;
const char *add_fd_kinds(const char *value);
const char *add_fd_flags(const char *value);
/* What it is for whoever gets it in a message, too; not 0. */
uint32_t fd_lasting_kind(struct lind_arg fd, const struct stat *st);
bool fd_matches(uint64_t cage, uint32_t fd);
void mark_what_matches(struct client *client, uint32_t end);
int64_t on_set_flags(const struct lind_call *c);
int64_t on_control(const struct lind_call *c);
int64_t on_control_past(const struct lind_call *c);

/* sent.c: the files that were sent while they were inside, known again by what they are. */
bool identify(struct lind_arg fd, struct stat *st);
int remember(struct lind_arg fd, const struct stat *st);
bool was_sent(struct lind_arg fd, const struct stat *st);
bool anything_sent(void);

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
/* What a descriptor of a client leads to: what readlink of it in /proc/self/fd says. */
int64_t fd_link(uint64_t cage, uint32_t fd, char target[PATH_MAX]);
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
/* For --explain. */
const char *when(uint32_t nr, lind_handle_fn *handle);

#endif
