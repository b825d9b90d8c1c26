/* Other forms of openat: creat, and openat2 for grates that do not walk as it asks to. */
#ifndef LIND_OPENAT2_H
#define LIND_OPENAT2_H

#include <errno.h>
#include <fcntl.h>
#include <lind/raw.h>

/* The flags with which creat(2) opens. */
#define LIND_CREAT_FLAGS (O_CREAT | O_WRONLY | O_TRUNC)

/*
 * openat2 keeps its flags where the client can change them after our look, and may say how to walk.
 * Without the latter it is openat, with the flags that are read here: makes that of the call. 0, or
 * the negative of an errno: what is wrong with the struct, and -ENOSYS for ways to walk, which
 * callers try first and do without.
 */
static inline int lind_openat2_plain(struct lind_call *c)
{
	enum { LONGEST = 4096 };
	struct {
		uint64_t flags, mode, resolve, more[LONGEST / 8 - 3];
	} how = { 0 };
	const char *more = (const char *)how.more;
	uint64_t size = c->args[3].value;
	int r;

	if (size < offsetof(__typeof__(how), more))
		return -EINVAL;
	if (size > sizeof how)
		return -E2BIG;
	if ((r = lind_read(c->args[2], &how, (size_t)size)))
		return r;
	for (size_t i = 0; i < sizeof how.more; i++)
		if (more[i])
			return -E2BIG;
	if (how.resolve)
		return -ENOSYS;
	/* openat ignores what does not go together; this does not. */
	if (how.flags > UINT32_MAX || how.mode > 07777 ||
	    (how.mode && !(how.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))))
		return -EINVAL;
	if (how.flags & O_PATH && how.flags & ~(uint64_t)(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))
		return -EINVAL;
	c->nr = SYS_openat;
	c->args[2].value = how.flags;
	c->args[3].value = how.mode;
	return 0;
}

#endif
