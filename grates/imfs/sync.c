/* The slow sides of sync.h. */
#include <sched.h>
#include "sync.h"

struct imfs_slot imfs_slots[IMFS_SLOTS];
_Thread_local int imfs_my_slot = -1;

/* Slots that threads have. Changes only while every slot before it is taken, so it stands still for
 * whoever holds the first. */
static int used = 1;
static unsigned given;

void imfs_slot_wait(int32_t *word)
{
	int32_t is_free;

	for (unsigned tries = 0;; tries++) {
		if (tries % 64 == 63)
			sched_yield();
		is_free = 0;
		if (!__atomic_load_n(word, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(word, &is_free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
	}
}

void imfs_write_lock(void)
{
	imfs_take(&imfs_slots[0].taken);
	for (int i = 1; i < used; i++)
		imfs_take(&imfs_slots[i].taken);
}

void imfs_write_unlock(void)
{
	for (int i = used - 1; i >= 0; i--)
		imfs_give(&imfs_slots[i].taken);
}

/* More threads than slots share them. */
void imfs_slot_assign(void)
{
	int slot;

	imfs_write_lock();
	slot = (int)(given++ % IMFS_SLOTS);
	if (slot < used) {
		imfs_write_unlock();
	} else {
		/* Nobody else knows the new slot yet. */
		imfs_slots[slot].taken = 1;
		used = slot + 1;
		imfs_write_unlock();
	}
	imfs_my_slot = slot;
}
