/* The stacks of threads that have ended wait here for the next ones: to map, protect and unmap one
 * costs more than to run a thread on it. A stack is identified by the struct pthread near its top,
 * which nobody changes meanwhile. Each place is taken and filled by one atomic operation, so no
 * lock can be held at a fork. */
#include <string.h>
#include <sys/mman.h>
#include "pthread_impl.h"
#include "libc.h"
#include "stacks.h"

#define PLACES 4
/* A larger stack is worth a new mapping, and keeping it could waste as much memory. */
#define LARGEST (1 << 20)

static volatile int places[PLACES];

/* Unlike munmap it does not wait for __vm_lock: the caller holds it, or nobody else knows the
 * memory. */
static void unmap(pthread_t t)
{
	__syscall(SYS_munmap, t->map_base, t->map_size);
}

static int put(pthread_t t)
{
	for (int i = 0; i < PLACES; i++)
		if (!places[i] && !a_cas(&places[i], 0, (int)(uintptr_t)t)) return 1;
	return 0;
}

static void *map_new(size_t size, size_t guard)
{
	unsigned char *map = __mmap(0, size, guard ? PROT_NONE : PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANON, -1, 0);
	if (map == MAP_FAILED || !guard) return map;
	if (!__mprotect(map + guard, size - guard, PROT_READ|PROT_WRITE)) return map;
	__munmap(map, size);
	return MAP_FAILED;
}

void *__take_stack(size_t size, size_t guard)
{
	for (int i = 0; i < PLACES; i++) {
		if (!places[i]) continue;
		pthread_t t = (pthread_t)(uintptr_t)a_swap(&places[i], 0);
		if (!t) continue;
		if (t->map_size == size && t->guard_size == guard) {
			unsigned char *map = t->map_base;
			size_t data = libc.tls_size + __pthread_tsd_size;
			memset(map + size - data, 0, data);
			return map;
		}
		if (!put(t)) unmap(t);
	}
	return map_new(size, guard);
}

void __leave_stack(pthread_t t)
{
	if (t->map_size <= LARGEST) {
		if (put(t)) return;
		/* Stacks of other sizes must not fill the places for good. */
		pthread_t oldest = (pthread_t)(uintptr_t)a_swap(&places[0], 0);
		if (oldest) unmap(oldest);
		if (put(t)) return;
	}
	unmap(t);
}
