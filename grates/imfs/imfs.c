/* The imfs grate: options, and which calls go where. */
#include <stdlib.h>
#include <lind/typed.h>
#include "grate.h"
#undef prlimit64	/* the C library's other name for prlimit */

#define DEFAULT_LIMIT (2ull << 30)
#define PASSES 32

struct imfs fs;

/* What is handled, for the manifest and for the kernel. */
#define IMFS_CALLS(CALL) \
	CALL(open, on_open) CALL(openat, on_openat) CALL(openat2, on_openat2) CALL(creat, on_creat) CALL(read, on_read) \
	CALL(write, on_write) CALL(pread64, on_pread64) CALL(pwrite64, on_pwrite64) CALL(readv, on_readv) \
	CALL(writev, on_writev) CALL(preadv, on_preadv) CALL(pwritev, on_pwritev) CALL(preadv2, on_preadv2) \
	CALL(pwritev2, on_pwritev2) CALL(lseek, on_lseek) CALL(sendfile, on_sendfile) \
	CALL(copy_file_range, on_copy_file_range) CALL(splice, on_splice) CALL(tee, on_tee) CALL(poll, on_poll) CALL(ppoll, on_poll) \
	CALL(close, on_close) CALL(close_range, on_close_range) CALL(dup, on_dup) CALL(dup2, on_dup2) CALL(dup3, on_dup3) \
	CALL(fcntl, on_fcntl) CALL(flock, on_flock) CALL(ioctl, on_ioctl) CALL(ftruncate, on_ftruncate) \
	CALL(fallocate, on_fallocate) CALL(fsync, on_sync) CALL(fdatasync, on_sync) CALL(syncfs, on_sync) \
	CALL(sync_file_range, on_sync_file_range) CALL(fadvise64, on_fadvise64) CALL(readahead, on_sync) \
	CALL(getdents, on_getdents64) CALL(getdents64, on_getdents64) \
	CALL(stat, on_stat) CALL(lstat, on_lstat) CALL(fstat, on_fstat) CALL(newfstatat, on_newfstatat) \
	CALL(statx, on_statx) CALL(access, on_access) CALL(faccessat, on_faccessat) CALL(faccessat2, on_faccessat2) \
	CALL(chmod, on_chmod) CALL(fchmod, on_fchmod) CALL(fchmodat, on_fchmodat) CALL(fchmodat2, on_fchmodat2) \
	CALL(chown, on_chown) CALL(lchown, on_lchown) CALL(fchown, on_fchown) CALL(fchownat, on_fchownat) \
	CALL(truncate, on_truncate) CALL(utimensat, on_utimensat) CALL(utime, on_utime) CALL(utimes, on_utimes) \
	CALL(futimesat, on_futimesat) CALL(statfs, on_statfs) CALL(fstatfs, on_fstatfs) \
	CALL(setxattr, on_setxattr) CALL(lsetxattr, on_lsetxattr) CALL(fsetxattr, on_fsetxattr) \
	CALL(getxattr, on_getxattr) CALL(lgetxattr, on_lgetxattr) CALL(fgetxattr, on_fgetxattr) \
	CALL(listxattr, on_listxattr) CALL(llistxattr, on_llistxattr) CALL(flistxattr, on_flistxattr) \
	CALL(removexattr, on_removexattr) CALL(lremovexattr, on_lremovexattr) CALL(fremovexattr, on_fremovexattr) \
	CALL(mkdir, on_mkdir) CALL(mkdirat, on_mkdirat) CALL(rmdir, on_rmdir) CALL(unlink, on_unlink) \
	CALL(unlinkat, on_unlinkat) CALL(rename, on_rename) CALL(renameat, on_renameat) CALL(renameat2, on_renameat2) \
	CALL(link, on_link) CALL(linkat, on_linkat) CALL(symlink, on_symlink) CALL(symlinkat, on_symlinkat) \
	CALL(readlink, on_readlink) CALL(readlinkat, on_readlinkat) CALL(mknod, on_mknod) CALL(mknodat, on_mknodat) \
	CALL(chdir, on_chdir) CALL(fchdir, on_fchdir) CALL(getcwd, on_getcwd) \
	CALL(bind, on_bind) CALL(connect, on_connect) CALL(sendto, on_sendto) CALL(recvfrom, on_recvfrom) \
	CALL(recvmsg, on_recvmsg) CALL(recvmmsg, on_recvmmsg) CALL(sendmsg, on_sendmsg) CALL(sendmmsg, on_sendmmsg) CALL(accept, on_named) CALL(accept4, on_named) CALL(getsockname, on_named) \
	CALL(getpeername, on_named) \
	CALL(mmap, on_mmap) CALL(munmap, on_munmap) CALL(msync, on_msync) CALL(execve, on_execve) \
	CALL(execveat, on_execveat) \
	CALL(clone, on_clone) CALL(setrlimit, on_limit) CALL(prlimit64, on_limit) CALL(umask, on_umask) CALL(setuid, on_set_ids) CALL(setgid, on_set_ids) CALL(setreuid, on_set_ids) \
	CALL(setregid, on_set_ids) CALL(setresuid, on_set_ids) CALL(setresgid, on_set_ids) CALL(setgroups, on_set_ids) \
	CALL(setfsuid, on_set_ids) CALL(setfsgid, on_set_ids) CALL(capset, on_set_ids)

#define DECLARE(name, handle) LIND_DECLARE("answers", name);
IMFS_CALLS(DECLARE)

#define HANDLER(name, handle) { SYS_##name, handle },
static const struct lind_handler on[] = { IMFS_CALLS(HANDLER) };

const uint32_t fd_calls[] = {
	SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_lseek,
	SYS_close, SYS_fcntl, SYS_flock, SYS_ioctl, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync_file_range,
	SYS_fadvise64, SYS_readahead, SYS_getdents64, SYS_fstat, SYS_fchmod, SYS_fchown, SYS_fstatfs, SYS_fgetxattr, SYS_fsetxattr,
	SYS_flistxattr, SYS_fremovexattr,
};
const size_t fd_call_count = sizeof fd_calls / sizeof *fd_calls;

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

	if (imfs_walk(&fs, &us, fs.root, NULL, name, IMFS_NOFOLLOW, &at) || imfs_create(&fs, &us, &at, S_IFDIR | 0755, &n))
		lind_die("--pass %s: cannot be made", name);
	n->outside = true;
}

/* A whole filesystem has the directory that programs expect to find. */
static void make_tmp(void)
{
	struct imfs_process us = { 0 };
	struct imfs_at at;

	if (imfs_walk(&fs, &us, fs.root, NULL, "tmp", IMFS_NOFOLLOW, &at) || imfs_mkdir(&fs, &us, &at, 01777))
		lind_die("/tmp cannot be made");
}

LIND_OPTION("p", "prefix", "value");
LIND_OPTION("s", "size", "value");
LIND_OPTION("-", "preload", "reads=");
LIND_OPTION("-", "dump", "=writes");
LIND_OPTION("-", "pass", "value");

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
	imfs_wake = lind_wake;
	if (imfs_init(&fs, prefix, limit, &root))
		lind_die("--prefix %s: too long, or no memory", prefix);
	fs.root->mode = S_IFDIR | 0777 | S_ISVTX;
	if (!fs.prefix[0])
		make_tmp();
	if (!passes_given && !fs.prefix[0])
		pass_count = 3;
	for (size_t i = 0; i < pass_count; i++)
		make_pass(passes[i]);
	holder_init();
	fifo_init();
	backing_init();
	if (!lind_explains())
		preload_all();
	lind_grate_lifecycle(&lifecycle);
	return lind_grate_run(on, sizeof on / sizeof *on, argc, argv);
}
