/* The slow sides of sync.h. */
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "sync.h"

struct imfs_slot imfs_slots[IMFS_SLOTS];
_Thread_local int imfs_my_slot = -1;
volatile int32_t imfs_company = 1, imfs_first_inside;

/* Nobody is inside alone, and nobody will be. Changes under the first slot's lock. */
static int32_t settled = 1;

/* Slots that threads have. Changes only while every slot before it is taken, so it does not
 * change for the holder of the first. */
static int used = 1;
static unsigned given;

void imfs_sync_init(void)
{
	/* A grate before this one may refuse it. */
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		imfs_company = settled = 0;
}

/*
 * Ends the time in which the first thread works alone. After the barrier it either sees
 * `imfs_company`, or had looked before, and then what it wrote before that, that it is inside,
 * shows here.
 */
static void end_alone(void)
{
	if (settled)
		return;
	imfs_company = 1;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)) {
		fputs("imfs: membarrier was refused when a second thread came\n", stderr);
		abort();
	}
	while (imfs_first_inside)
		sched_yield();
	settled = 1;
}

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

void imfs_write_lock_all(void)
{
	imfs_take(&imfs_slots[0].taken);
	/* The first comes by way of this lock, too: `given` does not change. */
	if (given)
		end_alone();
	for (int i = 1; i < used; i++)
		imfs_take(&imfs_slots[i].taken);
}

void imfs_write_unlock_all(void)
{
	for (int i = used - 1; i >= 0; i--)
		imfs_give(&imfs_slots[i].taken);
}

/* More threads than slots share them, except the first. */
void imfs_slot_assign(void)
{
	int slot;

	imfs_write_lock_all();
	slot = given ? 1 + (int)((given - 1) % (IMFS_SLOTS - 1)) : 0;
	given++;
	if (slot < used) {
		imfs_write_unlock_all();
	} else {
		/* Nobody else knows the new slot yet. */
		imfs_slots[slot].taken = 1;
		used = slot + 1;
		imfs_write_unlock_all();
	}
	imfs_my_slot = slot;
}
