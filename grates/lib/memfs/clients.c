/* The clients. The kernel keeps their credentials, umask and working directory; the filesystem
 * copies the parts that it needs when a client starts and whenever the client changes them. */
#include <stdlib.h>
#include "memfs.h"

static const uint32_t fd_calls[] = {
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_readv,
	SYS_writev,
	SYS_preadv,
	SYS_pwritev,
	SYS_preadv2,
	SYS_pwritev2,
	SYS_lseek,
	SYS_close,
	SYS_fcntl,
	SYS_flock,
	SYS_ioctl,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fsync,
	SYS_fdatasync,
	SYS_syncfs,
	SYS_sync_file_range,
	SYS_fadvise64,
	SYS_readahead,
	SYS_getdents64,
	SYS_fstat,
	SYS_fchmod,
	SYS_fchown,
	SYS_fstatfs,
	SYS_fgetxattr,
	SYS_fsetxattr,
	SYS_flistxattr,
	SYS_fremovexattr,
};
static const size_t fd_call_count = sizeof fd_calls / sizeof *fd_calls;

struct imfs fs;
struct client nobody = { .p = { .umask = 0777, .cred = { .uid = 65534, .gid = 65534, .ruid = 65534, .rgid = 65534 } } };

static uint32_t ask(uint64_t cage, uint32_t nr)
{
	int64_t r = lind_call_plain(nr, cage, 0, 0, 0, 0);

	return r < 0 ? 0 : (uint32_t)r;
}

static void learn_ids(uint64_t cage, struct imfs_cred *cred)
{
	/* _LINUX_CAPABILITY_VERSION_3; effective, permitted, inheritable */
	uint32_t header[2] = { 0x20080522, 0 }, sets[6] = { 0 };
	struct lind_arg none = { 0, cage };
	int64_t groups;

	/* An invalid id changes nothing. */
	cred->uid = (uint32_t)lind_call_plain(SYS_setfsuid, cage, UINT32_MAX, 0, 0, 0);
	cred->gid = (uint32_t)lind_call_plain(SYS_setfsgid, cage, UINT32_MAX, 0, 0, 0);
	cred->ruid = ask(cage, SYS_getuid);
	cred->rgid = ask(cage, SYS_getgid);
	if (lind_call(SYS_capget, cage, lind_mine(header), lind_mine(sets), none, none, none, none) < 0)
		memset(sets, 0, sizeof sets);
	cred->caps = sets[0] & IMFS_ALL_CAPS;
	cred->rcaps = cred->ruid ? 0 : sets[1] & IMFS_ALL_CAPS;
	groups = lind_call(SYS_getgroups, cage, (struct lind_arg){ IMFS_GROUPS, cage }, lind_mine(cred->groups), none,
	    none, none, none);
	cred->group_count = groups < 0 ? 0 : (uint32_t)groups;
}

static uint32_t learn_umask(uint64_t cage)
{
	int64_t mask = lind_call_plain(SYS_umask, cage, 022, 0, 0, 0);

	if (mask < 0)
		return 022;
	lind_call_plain(SYS_umask, cage, (uint64_t)mask, 0, 0, 0);
	return (uint32_t)mask;
}

/* A working directory that is below the prefix is made here, so that relative paths lead into
 * the filesystem. */
static void learn_cwd(uint64_t cage, struct client *client)
{
	struct lind_arg none = { 0, cage };
	char path[IMFS_PATH];
	struct imfs_at at;
	int64_t r = lind_call(
	    SYS_getcwd, cage, lind_mine(path), (struct lind_arg){ sizeof path, cage }, none, none, none, none);

	if (r < 0)
		strcpy(path, "/");
	imfs_write_lock();
	if (!make_directories(&client->p, path) && !imfs_walk(&fs, &client->p, NULL, NULL, path, IMFS_FOLLOW, &at) &&
	    !at.outside && at.node && S_ISDIR(at.node->mode))
		imfs_set_cwd(&fs, &client->p, at.node, NULL);
	else
		imfs_set_cwd(&fs, &client->p, NULL, strdup(path));
	imfs_write_unlock();
}

static struct client *unused; /* under the lock */

static struct client *new_client(void)
{
	struct client *client;

	imfs_write_lock();
	if ((client = unused))
		unused = client->next_free;
	imfs_write_unlock();
	if (!client && (!(client = calloc(1, sizeof *client)) || imfs_fds_init(&client->p.fds)))
		lind_die("out of memory for a client");
	return client;
}

/* Calls on descriptors that are not ours pass us by. */
static void route(const struct client *client, uint64_t cage)
{
	struct lind_fd_routes routes = {
		.words = (uintptr_t)client->p.fds.files,
		.count = IMFS_FDS,
		.mask = UINT32_MAX,
		.unset = lind_self(),
	};

	for (size_t i = 0; i < fd_call_count; i++)
		lind_route_number(&routes, fd_calls[i]);
	(void)lind_route_fds(cage, &routes);
}

static void *start(uint64_t cage)
{
	struct client *client = new_client();

	learn_ids(cage, &client->p.cred);
	client->p.umask = learn_umask(cage);
	learn_limit(cage, client);
	learn_cwd(cage, client);
	imfs_write_lock();
	client->cage = client->p.pid = cage;
	client->program = spawned_program();
	imfs_write_unlock();
	/* Our own calls are for the kernel. */
	if (cage != lind_self())
		route(client, cage);
	return client;
}

/* The client whose numbers are held while a child gets a copy of them, first from the kernel and
 * then from us. */
static __thread struct client *copied;

int64_t on_clone(const struct lind_call *c)
{
	struct client *client = client_of(c->target);
	int64_t child;

	if (c->args[0].value & CLONE_THREAD) {
		if (client->cage == c->target)
			__atomic_store_n(&client->threaded, true, __ATOMIC_RELAXED);
		return lind_forward(c);
	}
	copied = numbers_hold(client);
	if ((child = lind_forward(c)) <= 0) {
		numbers_release(copied);
		copied = NULL;
	}
	return child;
}

static void *fork_client(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	struct client *from = parent, *client = new_client();

	(void)parent_cage;
	imfs_write_lock();
	client->cage = client->p.pid = cage;
	if (imfs_process_copy(&client->p, &from->p))
		lind_die("out of memory for a client");
	if (!spawned) {
		numbers_release(copied);
		copied = NULL;
	}
	if (spawned) {
		imfs_process_exec(&fs, &client->p);
		client->program = spawned_program();
	} else {
		mappings_copy(client, from);
		runs(&client->program, from->program);
	}
	imfs_write_unlock();
	route(client, cage);
	return client;
}

static void exec_client(void *state, uint64_t cage)
{
	struct client *client = state;
	struct imfs_cred cred;

	/* A program begins with the saved ids and the capabilities that execve(2) gives. */
	learn_ids(cage, &cred);
	imfs_write_lock();
	client->p.cred = cred;
	client->threaded = false;
	imfs_process_exec(&fs, &client->p);
	mappings_free(client);
	runs_no_more(&client->program);
	client->program = client->next_program;
	client->next_program = NULL;
	imfs_write_unlock();
}

static void exit_client(void *state, uint64_t cage, int status)
{
	struct client *client = state;

	(void)cage;
	(void)status;
	imfs_write_lock();
	client->cage = 0;
	client->threaded = false;
	mappings_free(client);
	runs_no_more(&client->program);
	runs_no_more(&client->next_program);
	imfs_process_clear(&fs, &client->p);
	client->next_free = unused;
	unused = client;
	imfs_write_unlock();
	travel_settle();
}

static void end(int status)
{
	(void)status;
	first_ended();
}

const struct lind_lifecycle lifecycle = {
	.start = start,
	.fork = fork_client,
	.exec = exec_client,
	.exit = exit_client,
	.end = end,
};

int64_t on_umask(const struct lind_call *c)
{
	struct client *client = client_of(c->target);
	int64_t r = lind_forward(c);

	if (r >= 0)
		client->p.umask = lind_arg32(c, 0) & 0777;
	return r;
}

/* setuid and its relatives: the kernel decides, then we look what came of it. */
int64_t on_set_ids(const struct lind_call *c)
{
	struct client *client = client_of(c->target);
	int64_t r = lind_forward(c);
	struct imfs_cred cred;

	if (r < 0)
		return r;
	learn_ids(c->target, &cred);
	imfs_write_lock();
	if (client->cage == c->target)
		client->p.cred = cred;
	imfs_write_unlock();
	return r;
}
