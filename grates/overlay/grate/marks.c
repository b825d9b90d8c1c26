/*
 * Changes as they happen: nodes that differ from their rows, names that went, numbers that are
 * free. A flush takes them from here.
 */
#include "marks.h"
#include "log.h"
#include "saved.h"

struct imfs_under *marks_dirty, *marks_mapped;
static struct imfs_under **last_dirty = &marks_dirty;
struct unnamed *marks_unnamed;
static struct unnamed **last_unnamed = &marks_unnamed;
uint64_t *marks_gone;
size_t marks_gone_count;
static size_t gone_room;
uint64_t marks_dirty_bytes;
bool marks_forgetting;

bool any_marks(void)
{
	return marks_dirty || marks_mapped || marks_unnamed || marks_gone_count;
}

bool any_marks_now(void)
{
	return __atomic_load_n(&marks_dirty, __ATOMIC_RELAXED) || __atomic_load_n(&marks_mapped, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&marks_unnamed, __ATOMIC_RELAXED) || __atomic_load_n(&marks_gone_count, __ATOMIC_RELAXED);
}

void mark_clean(struct imfs_under *u)
{
	if (!u->at_dirty)
		return;
	*u->at_dirty = u->next_dirty;
	*(u->next_dirty ? &u->next_dirty->at_dirty : &last_dirty) = u->at_dirty;
	u->at_dirty = NULL;
}

void note_changed(struct imfs_node *n)
{
	struct imfs_under *u = n->under;

	u->who = log_who();
	if (u->at_dirty)
		return;
	u->next_dirty = NULL;
	u->at_dirty = last_dirty;
	*last_dirty = u;
	last_dirty = &u->next_dirty;
}

void note_mapped(struct imfs_node *n)
{
	struct imfs_under *u = n->under;

	if (u->mapped || !store)
		return;
	u->mapped = true;
	u->next_mapped = marks_mapped;
	marks_mapped = u;
}

struct unnamed *take_unnamed(void)
{
	struct unnamed *first = marks_unnamed;

	if (first && !(marks_unnamed = first->next))
		last_unnamed = &marks_unnamed;
	return first;
}

/* The name below is removed here. */
static int leave_out(struct imfs_under *dir, const char *name)
{
	struct left_out *new = malloc(sizeof *new + strlen(name) + 1);

	if (!new)
		return -ENOMEM;
	strcpy(new->name, name);
	new->next = dir->left_out;
	dir->left_out = new;
	return 0;
}

void marks_forget_left_out(struct imfs_under *dir)
{
	struct left_out *l;

	while ((l = dir->left_out)) {
		dir->left_out = l->next;
		free(l);
	}
}

void note_unnamed(struct imfs_entry *e)
{
	struct imfs_under *u = e->dir->under;
	struct unnamed *new;

	u->hidden += e->lower;
	if (e->lower && leave_out(u, e->name))
		store_breaks(-ENOMEM, "no memory");
	/* A file that was made here since the last flush leaves nothing behind. */
	if (!store || (!e->lower && !e->stored && !u->hidden))
		return;
	if (!(new = malloc(sizeof *new + e->length + 1))) {
		store_breaks(-ENOMEM, "no memory");
		return;
	}
	new->next = NULL;
	new->dir = e->dir->ino;
	new->ino = e->node->ino;
	new->who = log_who();
	new->stored = e->stored;
	new->what = e->lower ? HIDES : u->hidden ? UNSURE : FREE;
	memcpy(new->name, e->name, e->length + 1);
	*last_unnamed = new;
	last_unnamed = &new->next;
}

static void forget_row(uint64_t ino)
{
	if (marks_gone_count == gone_room) {
		size_t room = gone_room ? gone_room * 2 : 64;
		uint64_t *grown = realloc(marks_gone, room * sizeof *grown);

		if (!grown) {
			store_breaks(-ENOMEM, "no memory");
			return;
		}
		marks_gone = grown;
		gone_room = room;
	}
	marks_gone[marks_gone_count++] = ino;
}

void note_gone(struct imfs_under *u)
{
	struct imfs_under **at = &marks_mapped;

	mark_clean(u);
	marks_forget_left_out(u);
	if (u->row && !marks_forgetting)
		forget_row(u->node->ino);
	if (!u->mapped)
		return;
	while (*at != u)
		at = &(*at)->next_mapped;
	*at = u->next_mapped;
}

void note_wrote(struct imfs_node *n, struct imfs_chunk *c, uint16_t blocks)
{
	uint16_t more = blocks & (uint16_t)~c->dirty;

	(void)n;
	marks_dirty_bytes += (uint64_t)__builtin_popcount(more) * IMFS_BLOCK;
	c->dirty |= blocks;
}
