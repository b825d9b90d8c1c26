/*
 * Calls whose data lies in pieces (readv, writev, sendmsg, recvmsg): copied once into the grate's
 * memory, so that what was looked at is what is passed on, whatever the client writes there
 * meanwhile.
 */
#ifndef LIND_TRANSFER_H
#define LIND_TRANSFER_H

#include <lind/raw.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes that one call carries through a copy. Longer ones become short, as they may on
 * Linux. */
#define LIND_TRANSFER_MAX (4u << 20)

/* Where a client's bytes lie: the pieces are read once, the bytes when asked for. */
struct lind_vector {
	struct iovec *pieces; /* addresses in the memory of `cage` */
	unsigned count;
	uint64_t cage;
	uint64_t total;  /* at most LIND_TRANSFER_MAX */
};

/* Reads the pieces. 0, or -EINVAL, -EFAULT, -ENOMEM; then there is nothing to free. */
int lind_vector_read(struct lind_vector *v, struct lind_arg iov, uint64_t count);

/* Copies `length` of the bytes to our memory, or from it; `length` is at most `total`. 0 or
 * -EFAULT. */
int lind_vector_gather(const struct lind_vector *v, void *to, size_t length);
int lind_vector_scatter(const struct lind_vector *v, const void *from, size_t length);

void lind_vector_free(struct lind_vector *v);

/* Two names for what one call may point to. */
#define LIND_MESSAGE_NAME 128

/*
 * A message. `own` is what to pass on, all of it in our memory: change its name, its control
 * messages or the length of its one piece before that. The descriptors in control messages are the
 * client's numbers.
 */
struct lind_message {
	struct msghdr own;
	struct iovec piece;
	char name[LIND_MESSAGE_NAME];
	struct lind_vector where; /* the client's bytes */
	struct lind_arg at;  /* the client's header */
	struct msghdr client;  /* as it was read */
};

/* Copies a message that is to be sent, or makes room for one to be received. 0, or the negative
 * of an errno; then there is nothing to free. */
int lind_message_sent(struct lind_message *m, struct lind_arg at);
int lind_message_room(struct lind_message *m, struct lind_arg at);

/* Makes call `c`, a sendmsg or recvmsg, with the copy. `flags` are those of the call. */
int64_t lind_message_pass(struct lind_message *m, const struct lind_call *c, uint64_t flags);

/* Gives the client what was received into `own`: `received` bytes, the name, control messages
 * and flags. `received`, or -EFAULT. */
int64_t lind_message_give(const struct lind_message *m, int64_t received, uint64_t flags);

void lind_message_free(struct lind_message *m);

/* Whether the socket in argument 0 waits where it takes nothing, and no flag says otherwise; and
 * waits until it takes something: 0 or more, or the negative of an errno. For who has to send
 * without waiting, again and again. */
int lind_message_blocks(const struct lind_call *c, uint64_t flags);
int64_t lind_message_wait(const struct lind_call *c);

/* For a recvmsg: waits as the call itself would, until there is something to receive: 0 or more,
 * or an error, which is the call's. */
int64_t lind_message_there(const struct lind_call *c, uint64_t flags);

/*
 * sendmmsg and recvmmsg as calls of one message each. `one` gets a call of sendmsg or recvmsg; this
 * does the counting, the lengths, MSG_WAITFORONE and the time limit of recvmmsg.
 */
int64_t lind_message_each(const struct lind_call *c, lind_handle_fn *one);

#ifdef __cplusplus
}
#endif
#endif
