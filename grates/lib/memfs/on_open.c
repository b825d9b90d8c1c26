/* Opening: the file is ours, its descriptor's number the kernel's. */
#include <lind/openat2.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include "memfs.h"

#define NO_ACCESS   3  /* neither reading nor writing: open(2) */
#define LONGEST_HOW 4096 /* bytes that openat2 may be given to say how */
#define RESOLVE_KNOWN \
	(RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT | \
	    RESOLVE_CACHED)

/*
 * The kernel's file behind our files' numbers in the tables of clients: each client gets duplicates
 * of it, so that numbers never collide and limits, dup, close, fork and exec stay the kernel's
 * business. /dev/null opened for no access has nothing that one client could do to another, and
 * poll and select treat it as a regular file. If it is missing, an empty file that nobody can fill
 * will do.
 */
int holder;

/* The directory that scoped walks of openat2 start from where they have left us. */
static int outside_root;

void holder_init(void)
{
	outside_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if ((holder = open("/dev/null", NO_ACCESS | O_CLOEXEC)) >= 0)
		return;
	holder = memfd_create("imfs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (holder < 0 || fcntl(holder, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		lind_die("cannot open the file that represents those in memory: %s", strerror(errno));
}

/* For the call that is being served, whose target is `cage`. Takes over the reference to `f`. */
int64_t give_fd(uint64_t cage, struct client *client, struct imfs_file *f, int stands, bool cloexec)
{
	struct client *held = numbers_hold(client);
	int64_t fd = lind_dup_to_client(stands, cloexec);
	int r = 0;

	imfs_write_lock();
	if (fd >= 0)
		r = client->cage == cage ? imfs_fd_room(&client->p.fds, (uint32_t)fd) : -ESRCH;
	if (fd < 0 || r)
		imfs_file_drop(&fs, f);
	else
		imfs_fd_set(&fs, &client->p, (uint32_t)fd, f, cloexec);
	imfs_write_unlock();
	if (r)
		lind_call_plain(SYS_close, cage, (uint64_t)fd, 0, 0, 0);
	numbers_release(held);
	return r ? r : fd;
}

/* openat2 of what is outside, where the walk came to. */
static int64_t open_elsewhere(const struct lind_call *c, const struct look *l, uint32_t flags, uint32_t mode)
{
	uint64_t how[3] = { flags, mode, l->resolve };
	struct lind_call changed = *c;

	changed.nr = SYS_openat2;
	changed.args[2] = lind_mine(how);
	changed.args[3] = (struct lind_arg){ sizeof how, c->target };
	if (!l->at.entered)
		return lind_forward(&changed);
	changed.args[1] = lind_mine(l->at.path);
	if (l->resolve & IMFS_SCOPED) {
		/* It started at our root, which stands for theirs. */
		if (fs.prefix[0] || outside_root < 0)
			return -EXDEV;
		changed.args[0] = (struct lind_arg){ (uint64_t)outside_root, lind_self() };
		changed.args[1] = lind_mine(l->at.path[1] ? l->at.path + 1 : ".");
	}
	return lind_forward(&changed);
}

/* The devices that may be opened by a name here: the kernel's, wherever the name is. */
static const char *device_of(const struct look *l)
{
	static const struct {
		unsigned major, minor;
		const char *path;
	} known[] = {
		{ 1, 3, "/dev/null" },
		{ 1, 5, "/dev/zero" },
		{ 1, 7, "/dev/full" },
		{ 1, 8, "/dev/random" },
		{ 1, 9, "/dev/urandom" },
		{ 5, 0, "/dev/tty" },
	};
	const struct imfs_node *n = l->at.node;

	for (size_t i = 0; n && S_ISCHR(n->mode) && i < sizeof known / sizeof *known; i++)
		if (n->rdev == makedev(known[i].major, known[i].minor))
			return known[i].path;
	return NULL;
}

/* open(2) of a device that the kernel has. */
static int64_t open_device(const struct lind_call *c, const char *path, uint32_t flags)
{
	struct lind_call changed = *c;

	changed.nr = SYS_open;
	changed.args[0] = (struct lind_arg){ (uint64_t)(uintptr_t)path, lind_self() };
	changed.args[1] =
	    (struct lind_arg){ flags & ~(uint32_t)(O_CREAT | O_TRUNC | O_NOFOLLOW | O_NOATIME), c->target };
	changed.args[2] = (struct lind_arg){ 0, c->target };
	return lind_forward(&changed);
}

static int64_t open_at(const struct lind_call *c, int dir, int path, uint32_t flags, uint32_t mode, uint32_t resolve)
{
	const char *device;
	struct imfs_file *f;
	struct look l;
	bool fifo;
	int r = look_within(c, dir, path, imfs_open_follow(flags), false, resolve, &l), bad = imfs_open_flags(flags);

	if (r != OUTSIDE && bad) {
		if (!r)
			imfs_write_unlock();
		return bad;
	}
	if (r == OUTSIDE && (r = proc_info(c, l.client, l.at.path, flags, &f)) <= 0)
		return r ? r : give_fd(c->target, l.client, f, holder, flags & O_CLOEXEC);
	if (r)
		return r == OUTSIDE && resolve ? open_elsewhere(c, &l, flags, mode) : look_elsewhere(c, path, r, &l);
	r = imfs_open(&fs, &l.client->p, &l.at, flags, mode, &f);
	/* It was allowed, but for what it is. */
	if (r == -ENXIO && (device = device_of(&l))) {
		imfs_write_unlock();
		return open_device(c, device, flags);
	}
	fifo = !r && imfs_is_fifo(f);
	imfs_write_unlock();
	if (fifo)
		return fifo_opened(c, l.client, f, flags & O_CLOEXEC);
	return r ? r : give_fd(c->target, l.client, f, holder, flags & O_CLOEXEC);
}

int64_t on_open(const struct lind_call *c)
{
	return open_at(c, -1, 0, lind_arg32(c, 1), lind_arg32(c, 2), 0);
}

int64_t on_creat(const struct lind_call *c)
{
	return open_at(c, -1, 0, LIND_CREAT_FLAGS, lind_arg32(c, 1), 0);
}

int64_t on_openat(const struct lind_call *c)
{
	return open_at(c, 0, 1, lind_arg32(c, 2), lind_arg32(c, 3), 0);
}

/* Makes openat of an openat2, and says how that is to walk. 0, or what is wrong with its struct. */
static int read_how(struct lind_call *c, uint32_t *resolve)
{
	struct {
		uint64_t flags, mode, resolve, more[LONGEST_HOW / 8 - 3];
	} how = { 0 };
	uint64_t size = c->args[3].value;
	int r = 0;

	*resolve = 0;
	if (size >= offsetof(__typeof__(how), more) && size <= sizeof how &&
	    !(r = lind_read(c->args[2], &how, (size_t)size))) {
		*resolve = (uint32_t)how.resolve;
		if (how.resolve > RESOLVE_KNOWN || (*resolve & IMFS_SCOPED) == IMFS_SCOPED)
			return -EINVAL;
		how.resolve = 0;
		c->args[2] = lind_mine(&how);
	}
	if (r || (r = lind_openat2_plain(c)))
		return r;
	return *resolve & RESOLVE_CACHED && lind_arg32(c, 2) & (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
	    ? -EAGAIN
	    : 0;
}

int64_t on_openat2(const struct lind_call *c)
{
	struct lind_call plain = *c;
	struct look l;
	uint32_t resolve;
	int bad = read_how(&plain, &resolve), r;

	if (!bad)
		return open_at(&plain, 0, 1, lind_arg32(&plain, 2), lind_arg32(&plain, 3), resolve);
	/* Outside it is for the kernel to say. */
	if ((r = look(c, 0, 1, IMFS_FOLLOW, false, &l)) == OUTSIDE)
		return look_elsewhere(c, 1, r, &l);
	if (!r)
		imfs_write_unlock();
	return bad;
}
