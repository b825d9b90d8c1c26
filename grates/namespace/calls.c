/*
 * The calls of a client that are under way and make descriptors or let go of numbers; and waiting
 * for those of others.
 */
#include <sched.h>
#include <time.h>
#include "calls.h"

/* Rounds of waiting: first without a call, since who is waited for is at work on another
 * processor and soon done, and what else wants this one would keep it for milliseconds; then
 * others are let go first; then it sleeps. */
#define AT_ONCE          20
#define QUICK            (AT_ONCE + 100)
#define PATIENT_IN_DOUBT 400

/* Those that an exec ended are not counted any more. */
static void took(atomic_uint *count)
{
	unsigned was = atomic_load(count);

	while (was && !atomic_compare_exchange_weak(count, &was, was - 1))
		;
}

/* Of a ticket. DOUBTS: what is left of the call is to say of its descriptor that it is outside. */
enum { WAITS = 1, HELD_HERE = 2, DOUBTS = 4, TICKET_STEP = 8 };

/* The ticket and place of the call that this thread is at. */
static _Thread_local uint32_t ticket_here;
static _Thread_local unsigned place_here;
static _Thread_local const atomic_uint *counted_here;

unsigned others(const atomic_uint *count)
{
	return atomic_load(count) - (counted_here == count);
}

static void comes(struct client *client, atomic_uint *count, uint32_t waits)
{
	uint32_t ticket = (atomic_fetch_add(&client->tickets, TICKET_STEP) + TICKET_STEP) | HELD_HERE | waits;

	atomic_fetch_add(count, 1);
	counted_here = count;
	for (unsigned i = 0; i < AT_WORK; i++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&client->at_work[i], &none, ticket)) {
			ticket_here = ticket;
			place_here = i;
			return;
		}
	}
	atomic_fetch_add(&client->crowd, 1);
	ticket_here = 0;
}

static void goes(struct client *client, atomic_uint *count)
{
	uint32_t ticket = ticket_here;

	if (!ticket)
		took(&client->crowd);
	else
		atomic_compare_exchange_strong(&client->at_work[place_here], &ticket, 0);
	ticket_here = 0;
	counted_here = NULL;
	took(count);
}

void making_begins(struct client *client)
{
	if (client)
		comes(client, &client->making, 0);
}

void waiting_begins(struct client *client)
{
	if (client)
		comes(client, &client->making, WAITS);
}

void making_ends(struct client *client)
{
	if (client)
		goes(client, &client->making);
}

void moving_begins(struct client *client)
{
	if (client)
		comes(client, &client->moving, 0);
}

void moving_ends(struct client *client)
{
	if (client)
		goes(client, &client->moving);
}

void only_doubts(struct client *client)
{
	uint32_t ticket = ticket_here;

	if (ticket && atomic_compare_exchange_strong(&client->at_work[place_here], &ticket, ticket | DOUBTS))
		ticket_here = ticket | DOUBTS;
}

bool others_ended(struct client *client)
{
	uint32_t tickets[AT_WORK];
	unsigned count = 0;

	if (atomic_load(&client->crowd))
		return false;
	for (unsigned i = 0; i < AT_WORK; i++)
		if ((tickets[i] = atomic_load(&client->at_work[i])) == ticket_here || tickets[i] & DOUBTS)
			tickets[i] = 0;
	for (int round = 0; round < PATIENT_IN_DOUBT; round++) {
		bool waits = false;

		count = 0;
		for (unsigned i = 0; i < AT_WORK; i++) {
			if (tickets[i] && atomic_load(&client->at_work[i]) == tickets[i]) {
				count++;
				waits |= tickets[i] & WAITS;
			}
		}
		if (!count || (waits && round > QUICK))
			break;
		wait_a_moment(round);
	}
	return !count;
}

void calls_ended(struct client *client)
{
	atomic_store(&client->making, 0);
	atomic_store(&client->moving, 0);
	atomic_store(&client->letting, 0);
	atomic_store(&client->frozen, 0);
	atomic_store(&client->crowd, 0);
	for (unsigned i = 0; i < AT_WORK; i++)
		atomic_store(&client->at_work[i], 0);
}

/* About a microsecond. */
static void pause_here(void)
{
	for (volatile int i = 0; i < 500; i++)
		;
}

void wait_a_moment(int round)
{
	static const struct timespec moment = { .tv_nsec = 1000000 };

	if (round < AT_ONCE)
		pause_here();
	else if (round < QUICK)
		sched_yield();
	else
		nanosleep(&moment, NULL);
}

bool wait_for_others(const struct client *client, int round)
{
	static const struct timespec moment = { .tv_nsec = 1000000 };
	static const uint32_t nothing;

	if (round < AT_ONCE)
		pause_here();
	if (round < QUICK)
		return round < AT_ONCE || !sched_yield();
	return lind_wait(client->cage, &nothing, 0, &moment) != -EINTR;
}

void letting_ends(struct client *client)
{
	if (client)
		took(&client->letting);
}

bool letting_begins(struct client *client)
{
	if (!client)
		return true;
	for (int i = 0;; i++) {
		atomic_fetch_add(&client->letting, 1);
		if (!atomic_load(&client->frozen))
			return true;
		letting_ends(client);
		if (!wait_for_others(client, i))
			return false;
	}
}

void fds_thaw(struct client *client)
{
	took(&client->frozen);
}

int fds_freeze(struct client *client)
{
	atomic_fetch_add(&client->frozen, 1);
	for (int i = 0; atomic_load(&client->letting); i++)
		if (!wait_for_others(client, i)) {
			fds_thaw(client);
			return -EINTR;
		}
	return 0;
}
