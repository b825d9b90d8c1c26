/* One side of a transfer between files: on_transfer.c, on_splice.c. */
#ifndef IMFS_TRANSFER_H
#define IMFS_TRANSFER_H

#include "memfs.h"

/* One side of a transfer. Ours if `file`, which we hold a reference to. */
struct side {
	struct client *client;
	struct imfs_file *file;
	struct lind_arg fd;
	bool at_pos;   /* no offset given: the file's own position moves */
	int64_t off;
};

/* Argument `fd` of a call, and the offset that goes with it. 0, and then side_give follows, or
 * an errno. */
int side_take(const struct lind_call *c, int fd, struct lind_arg off, struct side *s);
void side_give(struct side *s);
int64_t side_written(const struct lind_call *c, struct side *s,
    int64_t r); /* the same for what was written to, with the result of that */
int64_t side_get(struct side *s, void *buffer, size_t length);
int64_t side_put(struct side *s, const void *buffer, size_t length);
void side_unget(struct side *s, int64_t bytes); /* of what side_get gave */
int64_t side_give_offset(const struct side *s, struct lind_arg off);

#endif
