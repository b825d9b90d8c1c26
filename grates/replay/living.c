/* The programs that live, which end with the grate: none can do anything without it, and one that
 * tries forever would keep its host thread. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "replay.h"

static uint32_t *living;
static size_t count, room;
static bool ending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void living_add(uint32_t cage)
{
	pthread_mutex_lock(&lock);
	if (count == room) {
		room = room ? 2 * room : 64;
		if (!(living = realloc(living, room * sizeof *living)))
			lind_die("out of memory");
	}
	living[count++] = cage;
	pthread_mutex_unlock(&lock);
}

void living_remove(uint32_t cage)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++)
		if (living[i] == cage)
			living[i--] = living[--count];
	pthread_mutex_unlock(&lock);
}

void living_ended(void)
{
	while (__atomic_load_n(&ending, __ATOMIC_SEQ_CST))
		pause();
}

_Noreturn void living_end(int status)
{
	__atomic_store_n(&ending, true, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++)
		lind_call_plain(SYS_kill, lind_self(), living[i], SIGKILL, 0, 0);
	pthread_mutex_unlock(&lock);
	exit(status);
}
