/*
 * The data files of a state that is a directory: data/NUMBER has blocks of the inode with that
 * number, each in a slot, which is a block of the data file. The rows of the state say where each
 * block is (outside.c).
 *
 * A slot that a committed row names is never overwritten, so that the state is as it was if the
 * power fails. A block that is written again gets another slot, and the old one is in limbo until
 * no power failure brings a row back that names it: until a commit is on the disk.
 *
 * A block prefers the slot of its own number. So the data file of a file that was never overwritten
 * is simply that file with holes for what was not changed.
 *
 * Functions return 0, or the negative of an errno. The files are claims as rows are: somebody else
 * may have made the directory.
 */
#ifndef OVERLAY_DATA_H
#define OVERLAY_DATA_H

#include "slots.h"
#include "store.h"

struct data;
struct data_file;

#define SLOT_NONE UINT64_MAX

/* The descriptor of the directory is its own from then on. NULL: no memory. */
struct data *data_new(int folder);
void data_free(struct data *data);

/* The known slots of an inode. `is_new`: none is known yet, so data_holds must be called for
 * each slot that rows of any layer name. NULL: no memory. */
struct data_file *data_file(struct data *data, uint64_t ino, bool *is_new);
int data_holds(struct data_file *file, uint64_t block, uint64_t slot);
void data_forget(struct data *data, struct data_file *file); /* nothing is known any more */

/* Blocks that lie one after the other. -ENODATA: the file ends before. -EMLINK: what is there is
 * not a file of its own. */
int data_read(struct data *data, uint64_t ino, uint64_t slot, unsigned count, uint8_t *to);
int data_write(struct data *data, struct data_file *file, uint64_t slot, unsigned count, const uint8_t *from);

/* Where a block is to be written that lies in `slot`, or in SLOT_NONE, up to now. */
int data_take(struct data *data, struct data_file *file, uint64_t block, uint64_t *slot);
/* Its row is gone, or names another. */
int data_give(struct data *data, struct data_file *file, uint64_t slot);

/* Before a commit: all that was written is on the disk. A row never comes there before its
 * blocks, not even by chance. */
int data_sync(struct data *data);
void data_committed(struct data *data); /* from now on nothing of it is overwritten */
void data_durable(struct data *data); /* and the disk has the commit: slots in limbo go back to the file system */
void data_undone(struct data *data); /* it was not committed */
/* So much is in limbo that the disk should be waited for: a run that never asks for that would
 * fill it. */
bool data_waits(const struct data *data);
bool data_has_garbage(const struct data *data); /* slots that no row names and that are not known */

/* The numbers of all data files; malloc. */
int data_list(struct data *data, uint64_t **inos, size_t *count);
/* All that has not been told by data_holds goes back to the file system, and a file of which
 * nothing has. The disk must have the rows. */
int data_keep_only(struct data *data, struct data_file *file);

#endif
