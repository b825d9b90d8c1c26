/*
 * The one lock of the filesystem: many readers or one writer.
 *
 * Each thread that handles calls has a slot of its own, and reading takes that slot only: one
 * uncontended exchange, nothing shared between threads. Writing takes every slot in use. A slot is given back by a plain store, which
 * on x86-64, the only host there is, no earlier access passes; the compiler barrier keeps it in place.
 *
 * Under it nothing blocks: no call is forwarded while it is held, only memory is copied.
 */
#ifndef IMFS_SYNC_H
#define IMFS_SYNC_H

#include <stdint.h>

#define IMFS_SLOTS 32

struct imfs_slot {
	int32_t taken;
	int32_t pad[15];
};

extern struct imfs_slot imfs_slots[IMFS_SLOTS];
extern _Thread_local int imfs_my_slot;	/* -1: none yet */

void imfs_slot_wait(int32_t *word);
void imfs_slot_assign(void);
void imfs_write_lock(void);
void imfs_write_unlock(void);

static inline void imfs_take(int32_t *word)
{
	int32_t is_free = 0;

	if (!__atomic_compare_exchange_n(word, &is_free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		imfs_slot_wait(word);
}

static inline void imfs_give(int32_t *word)
{
	__asm__ volatile("" ::: "memory");
	*(volatile int32_t *)word = 0;
}

static inline void imfs_read_lock(void)
{
	if (imfs_my_slot < 0)
		imfs_slot_assign();
	imfs_take(&imfs_slots[imfs_my_slot].taken);
}

static inline void imfs_read_unlock(void)
{
	imfs_give(&imfs_slots[imfs_my_slot].taken);
}

#endif
