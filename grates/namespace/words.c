/*
 * The words of descriptors: how they change while threads do. A word says INSIDE, or HELD if the
 * file at the number is outside for certain. A thread that is about to let go of a number sets
 * LETTING and clears HELD. A thread that gets a number outside sets HELD only if nobody has let go
 * of the number since before its call, or if no thread is left that may have put a file from inside
 * there.
 */
#include <fcntl.h>
#include <stdlib.h>
#include "calls.h"
#include "kinds.h"
#include "words.h"

#define PATIENT_WITH_LETTING 2000
#define TRIES                8

static bool let_go_since(uint32_t word, uint32_t since)
{
	uint32_t later = ((word & WORD_COUNT) - since) & WORD_COUNT;

	return word & LETTING || (later && later < WORD_COUNT / 2);
}

/* The next state of a word whose number was let go of while a call gave it to a file outside:
 * another call may have given the number to a file already, and not have said so yet. */
static uint32_t in_doubt(struct client *client, uint32_t fd, uint32_t word, bool last)
{
	if (word & (INSIDE | LETTING))
		return INSIDE | (word & LETTING);
	if (last)
		only_doubts(client);
	/* In this order: who has made what is there now is at it, or changes the word. */
	if (lind_call_plain(SYS_fcntl, client->cage, fd, F_GETFD, 0, 0) < 0)
		return 0;
	return others_ended(client) ? HELD : INSIDE;
}

static void outside(struct client *client, uint64_t number, uint32_t since, bool last)
{
	uint32_t fd = (uint32_t)number, was, bits;

	if (!client || number >= LIND_FDS)
		return;
	if (!atomic_load(&client->threads)) {
		if (!fd_made_outside(client, fd) && atomic_load(&client->fds[fd]))
			fd_set_word(client, fd, 0);
		return;
	}
	for (int tries = 0;; tries++) {
		was = fd_word(client, fd);
		/* A thread that lets go of it is soon done. The next such thread is not waited for: one may
		 * always follow. */
		if (was & LETTING) {
			for (int i = 0; fd_word(client, fd) == was && i < PATIENT_WITH_LETTING; i++)
				wait_a_moment(i);
			was = fd_word(client, fd);
		}
		bits = let_go_since(was, since) ? in_doubt(client, fd, was, last) : HELD;
		/* Others change it all the time: what is at it changes before it can be looked at. */
		if (tries == TRIES)
			bits = INSIDE;
		if (!(bits & INSIDE) && fd_made_outside(client, fd))
			return;
		if (tries == TRIES || atomic_compare_exchange_strong(&client->fds[fd], &was, next_word(client, bits)))
			break;
	}
	if (bits & INSIDE)
		fd_mark(client, fd);
}

void fd_outside(struct client *client, uint64_t number, uint32_t since)
{
	outside(client, number, since, true);
}

void fd_outside_of_several(struct client *client, uint64_t number, uint32_t since)
{
	outside(client, number, since, false);
}

bool let_go(struct client *client, uint32_t fd, uint32_t *mine)
{
	uint32_t was = fd_word(client, fd);

	*mine = 0;
	if (!client || fd >= LIND_FDS || !atomic_load(&client->threads))
		return true;
	for (int i = 0;; i++, was = fd_word(client, fd)) {
		*mine = next_word(client, (was & INSIDE) | LETTING);
		if (!(was & LETTING) && atomic_compare_exchange_strong(&client->fds[fd], &was, *mine))
			return true;
		if (was & LETTING && !wait_for_others(client, i))
			return false;
	}
}

bool has_let_go(struct client *client, uint32_t fd, uint32_t mine, uint32_t bits)
{
	uint32_t was = mine;

	if (!client || fd >= LIND_FDS)
		return true;
	if (!mine) {
		if (fd_word(client, fd) & (by_property ? INSIDE | HELD : INSIDE) && !(bits & INSIDE))
			fd_set_word(client, fd, 0);
		return true;
	}
	if (atomic_compare_exchange_strong(&client->fds[fd], &was, next_word(client, bits)))
		return true;
	while (was & LETTING &&
	    !atomic_compare_exchange_weak(&client->fds[fd], &was, next_word(client, was & (INSIDE | HELD))))
		;
	return false;
}

/* The words as they were before the fork that this thread makes. */
static _Thread_local uint32_t *before;

void fds_before_copy(const struct client *from)
{
	if (!atomic_load(&from->threads) || !(before = malloc(LIND_FDS * sizeof *before)))
		return;
	for (uint32_t fd = 0; fd < LIND_FDS; fd++)
		before[fd] = atomic_load(&from->fds[fd]);
}

void fds_not_copied(void)
{
	free(before);
	before = NULL;
}

/*
 * Of a client with threads: between the kernel's copy of the descriptors and ours of the words a
 * number may have got another file. A word is certain if it has not changed since before the fork,
 * and has INSIDE or HELD, or has neither while nobody makes or moves a descriptor. An uncertain
 * descriptor that is open in the child counts as inside: the grates inside can do without it, and
 * it cannot bypass them.
 */
static void copy_while_it_changes(struct client *to, uint64_t cage, const struct client *from)
{
	/* Before the words: who was at it when the kernel made its copy still is, or has changed a
	 * word. */
	bool busy = atomic_load(&from->making) || atomic_load(&from->moving);
	uint32_t end = 0;

	for (uint32_t fd = 0; fd < LIND_FDS; fd++) {
		uint32_t word = atomic_load(&from->fds[fd]);
		bool certain =
		    word & INSIDE || (before ? before[fd] == word && (word & HELD || !busy) : word & HELD && !busy);

		if (!certain && lind_call_plain(SYS_fcntl, cage, fd, F_GETFD, 0, 0) >= 0)
			word |= INSIDE;
		atomic_store_explicit(
		    &to->fds[fd], word & INSIDE ? word & (INSIDE | WORD_COUNT) : unknown_word(), memory_order_relaxed);
		if (word & INSIDE)
			end = fd + 1;
	}
	atomic_store(&to->fds_end, end);
	atomic_store(&to->stamp, atomic_load(&from->stamp));
	fds_not_copied();
}

/* To a client that has one thread. */
void fds_copy(struct client *to, uint64_t cage, const struct client *from)
{
	uint32_t end = atomic_load(&from->fds_end);

	if (atomic_load(&from->threads)) {
		copy_while_it_changes(to, cage, from);
		return;
	}
	for (uint32_t fd = 0; fd < end; fd++) {
		uint32_t word = atomic_load_explicit(&from->fds[fd], memory_order_relaxed);

		atomic_store_explicit(&to->fds[fd],
		    (word & (INSIDE | WORD_COUNT)) | (word & INSIDE ? 0 : unknown_word()), memory_order_relaxed);
	}
	atomic_store(&to->fds_end, end);
	atomic_store(&to->stamp, atomic_load(&from->stamp));
}

void fds_forget(struct client *client)
{
	uint32_t end = atomic_exchange(&client->fds_end, 0);

	for (uint32_t fd = 0; fd < (by_property || atomic_load(&client->threads) ? LIND_FDS : end); fd++)
		atomic_store_explicit(&client->fds[fd], unknown_word(), memory_order_relaxed);
}
