/* Between serve.c, which walks and decides, and act.c, which then makes the call. */
#ifndef LIND_PATH_ACT_H
#define LIND_PATH_ACT_H

#include <lind/openat2.h>
#include <sys/inotify.h>
#include "walk.h"

/* A call being served. */
struct served {
	const struct lind_call *c;
	const struct lind_file_use *use;
	const struct lind_view *view;
	char text[2][PATH_MAX];
	struct lind_place place[2];
};

static inline uint32_t open_flags(const struct lind_call *c)
{
	return c->nr == SYS_creat ? LIND_CREAT_FLAGS : lind_arg32(c, c->nr == SYS_open ? 1 : 2);
}

static inline struct lind_arg client(const struct served *s, uint64_t value)
{
	return (struct lind_arg){ value, s->c->target };
}

/* Makes the call on the places that its paths led to. -ENOSYS for one that is not known here. */
int64_t lind_path_act(const struct served *s);

#endif
