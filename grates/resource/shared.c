/*
 * Files in /dev/shm, where the memory of each cage is limited: what is in them is in nobody's map,
 * and stays when whoever made it has ended. So none is made or opened for writing. Where a path
 * leads is found by a walk of our own, and the call is made on what was found.
 */
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <lind/paths.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "files.h"
#include "limits.h"
#include "shared.h"

static struct stat folder;
/* Of files that are memory, with a name and without. */
static dev_t device;
static bool known;

static void find(void)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);
	struct stat file;

	known = fd >= 0 && fstat(fd, &file) == 0 && stat("/dev/shm", &folder) == 0;
	device = known ? file.st_dev : 0;
	if (fd >= 0)
		close(fd);
}

static bool is_shared(const struct lind_place *place)
{
	struct stat in;

	if (place->object >= 0)
		return S_ISREG(place->st.st_mode) && place->st.st_dev == device;
	return lind_path_below(place->path, "/dev/shm") ||
	    (place->dir >= 0 && fstat(place->dir, &in) == 0 && in.st_dev == folder.st_dev &&
		in.st_ino == folder.st_ino);
}

static int decide(const struct lind_call *call, unsigned effect, const struct lind_place *place, void *arg)
{
	if (!(effect & (LIND_DOES_WRITE | LIND_DOES_CREATE)) || !is_shared(place))
		return 0;
	return (int)hit(arg, EACH, MEMORY, 0, lind_call_name(call->nr));
}

static bool may_write(const struct lind_call *call)
{
	uint32_t flags;

	if (call->nr != SYS_open && call->nr != SYS_openat)
		return true;
	flags = lind_arg32(call, call->nr == SYS_open ? 1 : 2);
	return flags & (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY));
}

static int64_t act(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	return c && known && may_write(call) ? lind_path_call(call, NULL, decide, c) : lind_forward(call);
}

static int64_t on_open(const struct lind_call *call)
{
	return limited(FILES) ? open_file(call, act) : act(call);
}

static int64_t on_memfd_create(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	return c ? hit(c, EACH, MEMORY, 0, "memfd_create") : lind_forward(call);
}

LIND_HANDLE_OF(shared, alters, memfd_create, on_memfd_create);
LIND_HANDLE_OF(shared, alters, open, on_open);
LIND_HANDLE_OF(shared, alters, openat, on_open);
LIND_HANDLE_OF(shared, alters, openat2, on_open);
LIND_HANDLE_OF(shared, alters, creat, on_open);
LIND_HANDLE_OF(shared, alters, truncate, act);

void shared_begins(void)
{
	find();
	lind_grate_part(shared);
}
