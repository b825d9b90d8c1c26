/*
 * The resource grate, between its files: limits, what is used of them, and the clients that use it.
 *
 * What a limit allows is reserved before a call and what the call did not use is given back, so that any number of clients together never use
 * more. A limit holds for all clients together (TREE) or for each cage (EACH).
 */
#ifndef RESOURCE_H
#define RESOURCE_H

#include <lind/grate.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

enum what {
	CPU, WALL, MEMORY, CAGES, THREADS, FILES,
	READ, READ_FILE, READ_NETWORK, READ_PIPE,
	WRITE, WRITE_FILE, WRITE_NETWORK, WRITE_PIPE,
	WHATS,
};
#define RATES_FROM READ		/* bytes have limits per second too */
#define RATES (WHATS - RATES_FROM)

enum scope { TREE, EACH, SCOPES };
enum action { FAIL, STOP, KILL };

/* What kind of thing a descriptor is, in the order of the limits on bytes. */
enum class { NO_CLASS = 0, OF_FILE = 1, OF_NETWORK = 2, OF_PIPE = 3, ANY_CLASS = 4 };

#define UNLIMITED UINT64_MAX

/* Bytes of one kind per second. `free_at` is when the next byte may pass. */
struct rate {
	uint64_t per_second;
	int64_t free_at;
};

/* The memory of a cage. A child of vfork is on its parent's until it runs a program. */
struct space {
	unsigned cages;
	pthread_mutex_t lock;	/* one call that changes the memory at a time */
	uint64_t used;		/* under the lock */
};

struct client {
	uint64_t cage;
	char name[48];		/* of its program */
	struct client *next, **link;
	int64_t born;
	uint64_t used[WHATS];	/* the limits of each cage */
	struct rate rates[RATES];
	struct space *space;
	int64_t look_from;	/* not before then, or its first call, does its memory say what it will be */
	bool told[WHATS];
	uint64_t changes;	/* of descriptors: see use.h */
	uint64_t births;	/* threads that are being made */
	pthread_mutex_t lock;
	/* Under the lock: */
	uint8_t *files;		/* a byte for each number: whether it counts as open */
	uint32_t files_room;
	uint64_t parked, sending;	/* descriptors in flight that count, and those of calls under way: see files.c */
	char next_name[48];	/* of the program that it is about to run */
	struct memory_file **held;	/* memory files that it may have: see memfile.c */
	size_t held_count;
	uint64_t forks;
};

/* limits.c */
extern uint64_t limits[SCOPES][WHATS];
extern uint64_t tree_used[WHATS], tree_peak[WHATS];	/* the second if `learns` */
void note_peak(enum what what);
extern struct rate tree_rates[RATES];
extern uint64_t each_rates[RATES];
const char *set_limit(enum scope scope, const char *name, const char *amount);
const char *set_rate(enum scope scope, const char *name, const char *amount);
const char *set_action(const char *value);
bool limited(enum what what);
bool any_limit(void);	/* or rate */
bool paced(enum what what);
/* Whether what is used is known: it has a limit, or a report is wanted. */
bool counted(enum what what);
enum action action_on(enum what what);
/* Reserves `n`; false if the limit does not allow all of it. Then the limit was told, and `scope` is which. */
bool reserve(struct client *c, enum what what, uint64_t n, enum scope *scope);
void give_back(struct client *c, enum what what, uint64_t n);
/* Up to `n`, at least 1, of one limit; 0 if nothing is left. */
uint64_t grab(enum scope scope, struct client *c, enum what what, uint64_t n);
void drop(enum scope scope, struct client *c, enum what what, uint64_t n);
/* A limit was hit: says so, acts, and returns the negative errno for the call. `wanted` is what did not fit. */
int64_t hit(struct client *c, enum scope scope, enum what what, uint64_t wanted, const char *by);
const char *amount_text(enum what what, uint64_t n, char *text, size_t size);
extern const char *const what_names[WHATS];

/* clients.c */
extern const struct lind_lifecycle lifecycle;
extern bool ending;		/* the tree is being killed: nothing new is born */
/* The birth that this thread is making: what was reserved for it. */
extern _Thread_local struct birth {
	bool borrows;		/* the memory of its parent */
	uint64_t memory, files;
} birth;
extern const char *first_name;
/* How long a birth or exec may take between the call and the new memory. */
#define SETTLES 200000000ll
/* Clients neither come nor go meanwhile. May be taken again by its holder. */
void clients_lock(void);
void clients_unlock(void);
void signal_client(struct client *c, void *signal);
void each_client(void (*act)(struct client *c, void *with), void *with);
void signal_tree(int signal);
bool is_of_line(const struct client *c);
/* Kills all programs, and the grates of the line behind them if these have not ended by themselves some time after: they may have something to save. */
void end_programs(int64_t at);
#define GRACE 5000000000ll
int64_t now(void);

/* The handlers. */
#define MOST_HANDLERS 256
size_t file_handlers(struct lind_handler *to);
size_t byte_handlers(struct lind_handler *to);
extern const struct lind_handler process_handlers[], memory_handlers[], shared_handlers[], memory_file_handlers[];
extern const size_t process_handler_count, memory_handler_count, shared_handler_count, memory_file_handler_count;
/* What handled a call before the last handler of it was added: lind_forward if nothing did. */
lind_handle_fn *handler_before(uint32_t nr);
const char *call_name(uint32_t nr);

/* memory.c */
struct space *space_new(void);
struct space *space_share(struct space *space);
void space_drop(struct space *space);
/* Looks at what is mapped and counts it. */
void memory_look(struct client *c);
/* A client's memory goes with it. */
void memory_leave(struct client *c);
/* A child that was forked holds `bytes`, which were reserved of the tree. */
void memory_copied(struct client *child, uint64_t bytes);

/* shared.c: before clients run. */
void shared_find(void);

/* memfile.c */
void memory_files_find(void);	/* before clients run */
void memory_files_copied(struct client *child, struct client *parent);
void memory_files_leave(struct client *c);
void memory_files_handed_on(void);	/* grates behind this one may do that */

/* files.c */
/* Counts what the first client has. */
void files_begun(struct client *c);
/* Counts what a new client has, of which `reserved` is counted already. */
void files_found(struct client *c, uint64_t highest, uint64_t reserved);
uint64_t files_highest(struct client *c);
/* Numbers that are closed by now count no more, of any client. */
void files_look(void);
/* Reserves a descriptor, or answers as the limit says. 0 or a negative errno. */
int64_t file_reserve(struct client *c, uint64_t n, const char *by);
/* A reserved descriptor has got this number. */
void file_opened(struct client *c, int fd);
void files_leave(struct client *c);
/* A call whose result is a descriptor, which counts; `make` makes it. */
int64_t open_file(const struct lind_call *call, lind_handle_fn *make);
/* Counts descriptors that a message brought, and closes those beyond the limit. */
void files_received(struct client *c, struct msghdr *own);
/* How many descriptors a message sends; room for them, and what came of it. */
uint64_t files_in(const struct msghdr *own);
int64_t files_send(struct client *c, uint64_t n);
void files_sent(struct client *c, uint64_t n, bool done);

/* bytes.c */
/* A file is mapped: what can be read or written by that counts at once. */
int64_t map_file(struct client *c, const struct lind_call *call, lind_handle_fn *map);

/* watch.c */
void watch_begins(void);
/* Has it look, and starts it if it is not there. */
void watch_soon(void);
/* Has it look at memory now and then from now on. */
void watch_memory(void);
uint64_t cpu_of(uint64_t cage);
extern uint64_t cpu_ended;
extern bool wants_report, learns;
const char *set_learn(const char *path);
void report(int status);

#endif
