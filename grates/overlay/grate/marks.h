/* The changes since the last flush. The lock is held. */
#ifndef OVERLAY_MARKS_H
#define OVERLAY_MARKS_H

#include "under.h"

#define DIRTY_MOST (32u << 20) /* bytes of contents that are not in the state */

enum what { HIDES, FREE, UNSURE }; /* whether the lower directory has such a name */

struct unnamed {
	struct unnamed *next;
	uint64_t dir, ino;
	uint32_t who;
	enum what what;
	bool stored;
	char name[];
};

extern struct imfs_under *marks_dirty, *marks_mapped; /* nodes that differ; files that clients write to by themselves */
extern struct unnamed *marks_unnamed;
extern uint64_t *marks_gone; /* numbers whose rows go */
extern size_t marks_gone_count;
extern uint64_t marks_dirty_bytes;

bool any_marks(void);
bool any_marks_now(void); /* the same without the lock, which may be wrong a moment later */

void note_changed(struct imfs_node *n);
void note_mapped(struct imfs_node *n);
void note_unnamed(struct imfs_entry *e);
void note_gone(struct imfs_under *u);
void note_wrote(struct imfs_node *n, struct imfs_chunk *c, uint16_t blocks);

extern bool marks_forgetting; /* nodes that go keep their rows */
void marks_forget_left_out(struct imfs_under *dir);

void mark_clean(struct imfs_under *u);
struct unnamed *take_unnamed(void); /* the first, which is the caller's; NULL: none is left */

#endif
