/* The imfs grate: options, and which calls go where. */
#include <stdlib.h>
#include "grate.h"

#define DEFAULT_LIMIT (2ull << 30)
#define PASSES 32

struct imfs fs;

static const struct lind_handler on[] = {
	{ SYS_open, on_open }, { SYS_openat, on_openat }, { SYS_openat2, on_openat2 }, { SYS_creat, on_creat },
	{ SYS_read, on_read }, { SYS_write, on_write }, { SYS_pread64, on_pread64 }, { SYS_pwrite64, on_pwrite64 },
	{ SYS_readv, on_readv }, { SYS_writev, on_writev }, { SYS_preadv, on_preadv }, { SYS_pwritev, on_pwritev },
	{ SYS_preadv2, on_preadv2 }, { SYS_pwritev2, on_pwritev2 }, { SYS_lseek, on_lseek },
	{ SYS_sendfile, on_sendfile }, { SYS_copy_file_range, on_copy_file_range }, { SYS_splice, on_splice },

	{ SYS_close, on_close }, { SYS_close_range, on_close_range }, { SYS_dup, on_dup }, { SYS_dup2, on_dup2 },
	{ SYS_dup3, on_dup3 }, { SYS_fcntl, on_fcntl }, { SYS_flock, on_flock }, { SYS_ioctl, on_ioctl },
	{ SYS_ftruncate, on_ftruncate }, { SYS_fallocate, on_fallocate }, { SYS_fsync, on_sync }, { SYS_fdatasync, on_sync },
	{ SYS_syncfs, on_sync }, { SYS_sync_file_range, on_sync }, { SYS_fadvise64, on_fadvise64 }, { SYS_readahead, on_sync },
	{ SYS_getdents64, on_getdents64 },

	{ SYS_stat, on_stat }, { SYS_lstat, on_lstat }, { SYS_fstat, on_fstat }, { SYS_newfstatat, on_newfstatat },
	{ SYS_statx, on_statx }, { SYS_access, on_access }, { SYS_faccessat, on_faccessat }, { SYS_faccessat2, on_faccessat2 },
	{ SYS_chmod, on_chmod }, { SYS_fchmod, on_fchmod }, { SYS_fchmodat, on_fchmodat }, { SYS_fchmodat2, on_fchmodat2 },
	{ SYS_chown, on_chown }, { SYS_lchown, on_lchown }, { SYS_fchown, on_fchown }, { SYS_fchownat, on_fchownat },
	{ SYS_truncate, on_truncate }, { SYS_utimensat, on_utimensat }, { SYS_utime, on_utime }, { SYS_utimes, on_utimes },
	{ SYS_futimesat, on_futimesat }, { SYS_statfs, on_statfs }, { SYS_fstatfs, on_fstatfs },
	{ SYS_getxattr, on_path_xattr }, { SYS_setxattr, on_path_xattr }, { SYS_listxattr, on_path_xattr }, { SYS_removexattr, on_path_xattr },
	{ SYS_lgetxattr, on_path_lxattr }, { SYS_lsetxattr, on_path_lxattr }, { SYS_llistxattr, on_path_lxattr },
	{ SYS_lremovexattr, on_path_lxattr }, { SYS_fgetxattr, on_fd_xattr }, { SYS_fsetxattr, on_fd_xattr },
	{ SYS_flistxattr, on_fd_xattr }, { SYS_fremovexattr, on_fd_xattr },

	{ SYS_mkdir, on_mkdir }, { SYS_mkdirat, on_mkdirat }, { SYS_rmdir, on_rmdir }, { SYS_unlink, on_unlink },
	{ SYS_unlinkat, on_unlinkat }, { SYS_rename, on_rename }, { SYS_renameat, on_renameat }, { SYS_renameat2, on_renameat2 },
	{ SYS_link, on_link }, { SYS_linkat, on_linkat }, { SYS_symlink, on_symlink }, { SYS_symlinkat, on_symlinkat },
	{ SYS_readlink, on_readlink }, { SYS_readlinkat, on_readlinkat }, { SYS_mknod, on_mknod }, { SYS_mknodat, on_mknodat },
	{ SYS_chdir, on_chdir }, { SYS_fchdir, on_fchdir }, { SYS_getcwd, on_getcwd },

	{ SYS_bind, on_bind }, { SYS_connect, on_connect }, { SYS_sendto, on_sendto }, { SYS_recvfrom, on_recvfrom },
	{ SYS_recvmsg, on_recvmsg }, { SYS_accept, on_named }, { SYS_accept4, on_named }, { SYS_getsockname, on_named },
	{ SYS_getpeername, on_named },

	{ SYS_mmap, on_mmap }, { SYS_munmap, on_munmap }, { SYS_msync, on_msync },
	{ SYS_execve, on_execve }, { SYS_execveat, on_execveat },
	{ SYS_exit, on_leave }, { SYS_exit_group, on_leave },

	{ SYS_umask, on_umask }, { SYS_setuid, on_set_ids }, { SYS_setgid, on_set_ids }, { SYS_setreuid, on_set_ids },
	{ SYS_setregid, on_set_ids }, { SYS_setresuid, on_set_ids }, { SYS_setresgid, on_set_ids }, { SYS_setgroups, on_set_ids },
};

static const char *prefix = "/";
static uint64_t limit = DEFAULT_LIMIT;
static const char *passes[PASSES] = { "dev", "proc", "sys" };
static size_t pass_count;
static bool passes_given;

static const char *set_prefix(const char *value)
{
	prefix = value;
	return value[0] != '/' || strstr(value, "/.") || strstr(value, "//") ? "must be an absolute path without . and .." : NULL;
}

static const char *set_limit(const char *value)
{
	static const char units[] = "kmg";
	char *end;
	const char *unit;

	errno = 0;
	limit = strtoull(value, &end, 10);
	if (errno || end == value || *value == '-')
		return "must be a number of bytes, or one with K, M or G";
	if (*end && !end[1] && (unit = strchr(units, *end | 0x20))) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (limit > UINT64_MAX >> shift)
			return "too large";
		limit <<= shift;
		end++;
	}
	return *end ? "must be a number of bytes, or one with K, M or G" : NULL;
}

static const char *add_pass(const char *value)
{
	while (*value == '/')
		value++;
	if (!*value || strchr(value, '/'))
		return "must be one name in the root of the filesystem";
	if (pass_count == PASSES)
		return "too many of them";
	passes_given = true;
	passes[pass_count++] = value;
	return NULL;
}

/* A name that leads outside again. */
static void make_pass(const char *name)
{
	struct imfs_process us = { .umask = 022 };
	struct imfs_at at;
	struct imfs_node *n;

	if (imfs_walk(&fs, &us.cred, fs.root, NULL, name, IMFS_NOFOLLOW, &at) || imfs_create(&fs, &us, &at, S_IFDIR | 0755, &n))
		lind_die("--pass %s: cannot be made", name);
	n->outside = true;
}

/* A whole filesystem has the directory that programs expect to find. */
static void make_tmp(void)
{
	struct imfs_process us = { 0 };
	struct imfs_at at;

	if (imfs_walk(&fs, &us.cred, fs.root, NULL, "tmp", IMFS_NOFOLLOW, &at) || imfs_mkdir(&fs, &us, &at, 01777))
		lind_die("/tmp cannot be made");
}

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'p', "prefix", "PATH", "where the filesystem is (default /); all else is passed on", set_prefix },
		{ 's', "size", "BYTES", "how much it holds (default 2G); K, M and G are understood", set_limit },
		{ 0, "preload", "HOST=PATH", "copy a file or tree of the outside to PATH before the program starts", preload },
		{ 0, "dump", "PATH=HOST", "copy PATH to the outside when the program has ended", dump_later },
		{ 0, "pass", "NAME", "a name in its root that stays outside (default, for prefix /: dev, proc, sys)", add_pass },
	};
	struct imfs_cred root = { 0 };

	lind_options(options, sizeof options / sizeof *options, "A filesystem in memory.", &argc, &argv);
	imfs_sync_init();
	if (imfs_init(&fs, prefix, limit, &root))
		lind_die("--prefix %s: too long, or no memory", prefix);
	fs.root->mode = S_IFDIR | 0777 | S_ISVTX;
	if (!fs.prefix[0])
		make_tmp();
	if (!passes_given && !fs.prefix[0])
		pass_count = 3;
	for (size_t i = 0; i < pass_count; i++)
		make_pass(passes[i]);
	preload_all();
	lind_grate_lifecycle(&lifecycle);
	return lind_grate_run(on, sizeof on / sizeof *on, argc, argv);
}
