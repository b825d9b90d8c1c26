/* Which calls go where. */
#ifndef IMFS_CALLS_H
#define IMFS_CALLS_H

#include <lind/grate.h>
#include "memfs.h"
#undef prlimit64	/* the C library's other name for prlimit */

/* The calls that are handled. */
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
	CALL(execveat, on_execveat) CALL(spawn, on_execve) \
	CALL(inotify_init, on_inotify_init) CALL(inotify_init1, on_inotify_init1) CALL(inotify_add_watch, on_inotify_add_watch) \
	CALL(inotify_rm_watch, on_inotify_rm_watch) \
	CALL(clone, on_clone) CALL(setrlimit, on_limit) CALL(prlimit64, on_limit) CALL(umask, on_umask) CALL(setuid, on_set_ids) CALL(setgid, on_set_ids) CALL(setreuid, on_set_ids) \
	CALL(setregid, on_set_ids) CALL(setresuid, on_set_ids) CALL(setresgid, on_set_ids) CALL(setgroups, on_set_ids) \
	CALL(setfsuid, on_set_ids) CALL(setfsgid, on_set_ids) CALL(capset, on_set_ids)

#endif
