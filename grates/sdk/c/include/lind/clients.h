/* The clients of a grate: how they come and go, a state for each, and which calls on their
 * descriptors enter the grate. */
#ifndef LIND_CLIENTS_H
#define LIND_CLIENTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Clients. A grate that keeps something for each client says here how that begins and ends.
 * Every member may be NULL. `fork` also stands for spawn: it happens before the new client's
 * first call is handled. Threads of a client are the same client and are not reported.
 */
struct lind_lifecycle {
	/* A client without a parent among the clients; the result is its state. */
	void *(*start)(uint64_t cage);
	/* A client's child. `spawned` is true if it runs a new program already. */
	void *(*fork)(void *parent, uint64_t parent_cage, uint64_t cage, int spawned);
	/* The client runs a new program now. */
	void (*exec)(void *client, uint64_t cage);
	/* The client has ended and calls no more; `status` is what wait(2) tells. */
	void (*exit)(void *client, uint64_t cage, int status);
	/* The first program has ended, with this exit status. */
	void (*end)(int status);
};

/* To be called before lind_grate_run; `lifecycle` must stay. */
void lind_grate_lifecycle(const struct lind_lifecycle *lifecycle);

/* The state of a client. One met for the first time is started. NULL for cage 0, which is what
 * an argument says whose owner the caller may not name: such an argument is nobody's, and the
 * kernel refuses it with EPERM. */
static inline void *lind_client(uint64_t cage);

/*
 * Calls that need no handler because of the descriptor they are about. `words` is the address of
 * `count` 32-bit words of ours, one for each descriptor number of the client, which we change as we
 * like. A call of the client on itself, of one of the `numbers` that we handle, goes by the word
 * that its first argument is the number of: by `unset` if it has none of the bits in `mask`, else
 * by `set`. Either is 0, into our handler; our own cage, where lind_forward would send it; or a
 * descendant between us and the client, where a forward by that one's table would (lind_view). A
 * number from `count` on enters the handler, and so does a word with LIND_FD_ASK, if `mask` has not
 * that bit itself. It costs a few nanoseconds where a handler that only forwards costs two
 * crossings.
 */
struct lind_fd_routes {
	uint64_t words;
	uint32_t count, mask;
	uint64_t unset, set;
	uint64_t numbers[8];  /* bit n % 64 of word n / 64 is system call n */
};

#define LIND_FD_ASK 0x80000000u

/* No cage has more descriptors. */
#define LIND_FDS 65536u

static inline void lind_route_number(struct lind_fd_routes *routes, uint32_t nr)
{
	routes->numbers[nr / 64] |= 1ull << nr % 64;
}

/* Once for each client, from `start` and `fork` of the lifecycle: a child does not inherit it,
 * as its descriptors are in other words. The words stay as long as the client. 0, or the
 * negative of an errno: the handlers then get all calls. */
int lind_route_fds(uint64_t client, const struct lind_fd_routes *routes);

/* The rest is for lind_client to be inline. */
#define LIND_CLIENT_LEAF 0x40000u
extern void **lind_client_leaves_[];
void *lind_client_slow_(uint64_t cage);

static inline void *lind_client(uint64_t cage)
{
	void **leaf, *client;

	if ((leaf = __atomic_load_n(&lind_client_leaves_[(uint32_t)cage / LIND_CLIENT_LEAF], __ATOMIC_ACQUIRE)) &&
	    (client = __atomic_load_n(&leaf[(uint32_t)cage % LIND_CLIENT_LEAF], __ATOMIC_ACQUIRE)))
		return client;
	return lind_client_slow_(cage);
}

#ifdef __cplusplus
}
#endif
#endif
