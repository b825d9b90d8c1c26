/*
 * The base of all files of the resource grate: the clients, whose numbers everybody reads and
 * writes, and the waking of the watcher. It knows none of the other
 * files.
 *
 * The use of a call is reserved from the limit before the call, and the unused part is given back,
 * so that any number of clients together never use more. A limit holds for all clients together
 * (TREE) or for each cage (EACH).
 */
#ifndef RESOURCE_TABLES_H
#define RESOURCE_TABLES_H

#include <lind/grate.h>
#include <pthread.h>
#include <stdbool.h>

enum what {
	CPU,
	WALL,
	MEMORY,
	CAGES,
	THREADS,
	FILES,
	READ,
	READ_FILE,
	READ_NETWORK,
	READ_PIPE,
	WRITE,
	WRITE_FILE,
	WRITE_NETWORK,
	WRITE_PIPE,
	WHATS,
};
#define RATES_FROM READ  /* bytes have limits per second too */
#define RATES      (WHATS - RATES_FROM)

enum scope { TREE, EACH, SCOPES };
enum action { FAIL, STOP, KILL };

/* The kind of a descriptor, in the order of the limits on bytes. */
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
	pthread_mutex_t lock; /* one call that changes the memory at a time */
	uint64_t used;  /* under the lock */
};

struct client {
	uint64_t cage;
	char name[48];  /* of its program */
	struct client *next, **link;
	int64_t born;
	uint64_t used[WHATS]; /* the limits of each cage */
	struct rate rates[RATES];
	struct space *space;
	int64_t look_from; /* not before then, or its first call, does its memory say what it will be */
	bool reported[WHATS];
	uint64_t changes; /* of descriptors: see use.h */
	uint64_t births; /* threads that are being made */
	pthread_mutex_t lock;
	/* Under the lock: */
	uint8_t *files;  /* a byte for each number: whether it counts as open */
	uint32_t files_room;
	uint64_t parked, sending; /* descriptors in flight that count, and those of calls under way: see files.c */
	char next_name[48]; /* of the program that it is about to run */
	struct memory_file **held; /* memory files that it may have: see memfile.c */
	size_t held_count;
	uint64_t forks;
};

extern bool ending;  /* the tree is being killed: nothing new is born */
/* The birth that this thread is making: what was reserved for it. */
extern _Thread_local struct birth {
	bool borrows;  /* the memory of its parent */
	uint64_t memory, files;
} birth;
extern const char *first_name;
/* How long a birth or exec may take between the call and the new memory. */
#define SETTLES 200000000ll
/* Clients neither come nor go meanwhile. May be taken again by its holder. */
void clients_lock(void);
void clients_unlock(void);
void each_client(void (*act)(struct client *c, void *with), void *with);
void signal_tree(int signal);
bool is_of_line(const struct client *c);
/* Kills all programs, and the grates of the line behind them if these have not ended by
 * themselves some time after: they may have something to save. */
void end_programs(int64_t at);
#define GRACE 5000000000ll
int64_t now(void);
/* It is seen by everybody from then on, or by nobody any more. */
void client_add(struct client *c);
void client_remove(struct client *c);

/* Whether somebody wants to know at the end what was used. */
extern bool wants_report, learns;

/* Sets the function of the watcher's thread. Without it no such thread runs. */
void watch_with(void *(*thread)(void *));
/* Has it look, and starts it if it is not there. */
void watch_soon(void);
/* Has it look at memory now and then from now on. */
void watch_memory(void);
/* The watcher waits until a time, or until it is to look soon. */
void watch_wait(int64_t until);

#endif
