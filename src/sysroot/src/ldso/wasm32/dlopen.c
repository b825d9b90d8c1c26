/* dlopen: a library is part of the program, and what is left to do is to run its constructors. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "dynlink.h"
#include "libraries.h"

enum { NEW, STARTING, STARTED, LOST };

struct lind_library *volatile __lind_global;

static struct lind_library **end_of_global = (struct lind_library **)&__lind_global;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t started = PTHREAD_COND_INITIALIZER;

/* Runs the constructors of a library that were not run, after those of what it needs. Another
 * thread may be at it; this thread is if a constructor opens its own library. Wants the lock, which
 * constructors are called without. */
static int start(struct lind_library *library)
{
	void *self = pthread_self();
	unsigned count = 0;

	while (library->state == STARTING && library->starter != self)
		pthread_cond_wait(&started, &lock);
	if (library->state != NEW)
		return library->state != LOST;
	library->state = STARTING;
	library->starter = self;
	while (library->needed[count])
		count++;
	while (count--)
		start(library->needed[count]);
	pthread_mutex_unlock(&lock);
	for (void (*const *p)(void) = library->starts; *p; p++)
		(*p)();
	pthread_mutex_lock(&lock);
	library->state = STARTED;
	pthread_cond_broadcast(&started);
	return 1;
}

static void make_global(struct lind_library *library)
{
	for (struct lind_library *const *p = library->scope; *p; p++) {
		if ((*p)->at_start || (*p)->next_global || &(*p)->next_global == end_of_global)
			continue;
		*end_of_global = *p;
		end_of_global = &(*p)->next_global;
	}
}

void __lind_start_libraries(void)
{
	unsigned count = 0;

	pthread_mutex_lock(&lock);
	while (__lind_libraries[count])
		count++;
	while (count--)
		if (__lind_libraries[count]->at_start)
			start(__lind_libraries[count]);
	pthread_mutex_unlock(&lock);
}

/* In the child of fork only this thread is left. */
void __ldso_atfork(int who)
{
	if (who < 0) {
		pthread_mutex_lock(&lock);
	} else if (who == 0 || !__lind_libraries) {
		pthread_mutex_unlock(&lock);
	} else {
		lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		started = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
		for (struct lind_library *const *p = __lind_libraries; *p; p++)
			if ((*p)->state == STARTING && (*p)->starter != pthread_self())
				(*p)->state = LOST;
	}
}

static void *open_library(struct lind_library *library, const char *file, int mode)
{
	pthread_mutex_lock(&lock);
	if (mode & RTLD_NOLOAD && library->state == NEW) {
		pthread_mutex_unlock(&lock);
		__dl_seterr("%s: not loaded yet", file);
		return 0;
	}
	if (!library->path)
		library->path = strdup(file);
	library->handles++;
	if (mode & RTLD_GLOBAL)
		make_global(library);
	int usable = start(library);
	pthread_mutex_unlock(&lock);
	if (usable)
		return library;
	__dl_seterr("%s: a thread was running its constructors when the process forked", file);
	return 0;
}

void *dlopen(const char *file, int mode)
{
	int state;

	if (!__lind_libraries) {
		__dl_seterr("%s: this program takes no libraries: link it with -rdynamic", file ? file : "the program");
		return 0;
	}
	if (!(mode & (RTLD_LAZY | RTLD_NOW))) {
		__dl_seterr("%s: invalid mode for dlopen(): %d", file ? file : "the program", mode);
		return 0;
	}
	if (!file)
		return __lind_libraries[0];
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	struct lind_library *library = __lind_find_library(file);
	if (library && *library->digest)
		library = open_library(library, file, mode);
	pthread_setcancelstate(state, 0);
	return library;
}
