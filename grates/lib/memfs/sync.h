/*
 * The one lock of the filesystem: many readers or one writer.
 *
 * While one thread only has come with calls, it takes no lock: it notes that it is inside, and
 * whoever comes second ends that way of working for good, with a membarrier(2) that makes the first
 * see it (see sync.c). The locked exchange took 7 of 100 samples of short reads.
 *
 * From then on each thread that handles calls has a slot of its own, and reading takes that slot
 * only: one uncontended exchange, nothing shared between threads. Writing takes every slot in use.
 * A slot is given back by a plain store, which on x86-64, the only host there is, no earlier access
 * passes; the compiler barrier keeps it in place.
 *
 * Under it nothing blocks: no call is forwarded while it is held, only memory is copied, and
 * whoever waits is woken.
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
extern _Thread_local int imfs_my_slot; /* -1: none yet; 0: the first that came, and no other */
extern volatile int32_t imfs_company;  /* others than the first may come */
extern volatile int32_t imfs_first_inside; /* written by the first only */

/* The slow sides, not to be inlined at link time. */
__attribute__((cold, noinline)) void imfs_slot_wait(int32_t *word);
__attribute__((cold, noinline)) void imfs_slot_assign(void);
__attribute__((noinline)) void imfs_write_lock_all(void);
__attribute__((noinline)) void imfs_write_unlock_all(void);

/* At the start, before any call is handled. */
void imfs_sync_init(void);

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

static inline int imfs_enter_alone(void)
{
	if (imfs_my_slot || imfs_company)
		return 0;
	imfs_first_inside = 1;
	__asm__ volatile("" ::: "memory");
	if (!imfs_company)
		return 1;
	imfs_first_inside = 0;
	return 0;
}

static inline int imfs_leave_alone(void)
{
	if (imfs_my_slot || !imfs_first_inside)
		return 0;
	imfs_give((int32_t *)&imfs_first_inside);
	return 1;
}

/* The word that gives it back when it becomes 0: so a lock can be held until the kernel has made
 * a copy. */
static inline int32_t *imfs_read_lock(void)
{
	if (imfs_enter_alone())
		return (int32_t *)&imfs_first_inside;
	if (imfs_my_slot < 0)
		imfs_slot_assign();
	imfs_take(&imfs_slots[imfs_my_slot].taken);
	return &imfs_slots[imfs_my_slot].taken;
}

static inline void imfs_read_unlock(void)
{
	if (!imfs_leave_alone())
		imfs_give(&imfs_slots[imfs_my_slot].taken);
}

static inline void imfs_write_lock(void)
{
	if (!imfs_enter_alone())
		imfs_write_lock_all();
}

static inline void imfs_write_unlock(void)
{
	if (!imfs_leave_alone())
		imfs_write_unlock_all();
}

#endif
