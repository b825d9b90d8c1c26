/*
 * Calls that do what another does. A rule that restricts a call restricts these too, unless it says `exact`: who forbids
 * open means that files are not opened, not that one number is not used.
 */
#include "seccomp.h"

#define ROW(nr, ...) { nr, (const uint32_t[]){ __VA_ARGS__, 0 } }

static const struct {
	uint32_t nr;
	const uint32_t *others;
} families[] = {
	ROW(SYS_open, SYS_openat, SYS_openat2, SYS_creat),
	ROW(SYS_openat, SYS_open, SYS_openat2, SYS_creat),
	ROW(SYS_openat2, SYS_open, SYS_openat, SYS_creat),
	ROW(SYS_creat, SYS_open, SYS_openat, SYS_openat2),
	ROW(SYS_stat, SYS_newfstatat, SYS_statx, SYS_lstat),
	ROW(SYS_lstat, SYS_newfstatat, SYS_statx, SYS_stat),
	ROW(SYS_newfstatat, SYS_stat, SYS_lstat, SYS_statx),
	ROW(SYS_statx, SYS_stat, SYS_lstat, SYS_newfstatat),
	ROW(SYS_statfs, SYS_fstatfs),
	ROW(SYS_access, SYS_faccessat, SYS_faccessat2),
	ROW(SYS_faccessat, SYS_access, SYS_faccessat2),
	ROW(SYS_faccessat2, SYS_access, SYS_faccessat),
	ROW(SYS_mkdir, SYS_mkdirat),
	ROW(SYS_mkdirat, SYS_mkdir),
	ROW(SYS_mknod, SYS_mknodat),
	ROW(SYS_mknodat, SYS_mknod),
	ROW(SYS_rmdir, SYS_unlinkat),
	ROW(SYS_unlink, SYS_unlinkat),
	ROW(SYS_unlinkat, SYS_unlink, SYS_rmdir),
	ROW(SYS_rename, SYS_renameat, SYS_renameat2),
	ROW(SYS_renameat, SYS_rename, SYS_renameat2),
	ROW(SYS_renameat2, SYS_rename, SYS_renameat),
	ROW(SYS_link, SYS_linkat),
	ROW(SYS_linkat, SYS_link),
	ROW(SYS_symlink, SYS_symlinkat),
	ROW(SYS_symlinkat, SYS_symlink),
	ROW(SYS_readlink, SYS_readlinkat),
	ROW(SYS_readlinkat, SYS_readlink),
	ROW(SYS_chmod, SYS_fchmod, SYS_fchmodat, SYS_fchmodat2),
	ROW(SYS_fchmod, SYS_chmod, SYS_fchmodat, SYS_fchmodat2),
	ROW(SYS_fchmodat, SYS_chmod, SYS_fchmod, SYS_fchmodat2),
	ROW(SYS_fchmodat2, SYS_chmod, SYS_fchmod, SYS_fchmodat),
	ROW(SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat),
	ROW(SYS_fchown, SYS_chown, SYS_lchown, SYS_fchownat),
	ROW(SYS_lchown, SYS_chown, SYS_fchown, SYS_fchownat),
	ROW(SYS_fchownat, SYS_chown, SYS_fchown, SYS_lchown),
	ROW(SYS_utime, SYS_utimes, SYS_futimesat, SYS_utimensat),
	ROW(SYS_utimes, SYS_utime, SYS_futimesat, SYS_utimensat),
	ROW(SYS_futimesat, SYS_utime, SYS_utimes, SYS_utimensat),
	ROW(SYS_utimensat, SYS_utime, SYS_utimes, SYS_futimesat),
	ROW(SYS_truncate, SYS_ftruncate),
	ROW(SYS_ftruncate, SYS_truncate),
	ROW(SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr),
	ROW(SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr),
	ROW(SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr),
	ROW(SYS_listxattr, SYS_llistxattr, SYS_flistxattr),
	ROW(SYS_chdir, SYS_fchdir),
	ROW(SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_preadv2, SYS_sendfile, SYS_splice, SYS_copy_file_range),
	ROW(SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2, SYS_sendfile, SYS_splice, SYS_tee, SYS_vmsplice,
		SYS_copy_file_range),
	ROW(SYS_sendto, SYS_sendmsg, SYS_sendmmsg),
	ROW(SYS_sendmsg, SYS_sendto, SYS_sendmmsg),
	ROW(SYS_sendmmsg, SYS_sendto, SYS_sendmsg),
	ROW(SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg),
	ROW(SYS_recvmsg, SYS_recvfrom, SYS_recvmmsg),
	ROW(SYS_recvmmsg, SYS_recvfrom, SYS_recvmsg),
	ROW(SYS_accept, SYS_accept4),
	ROW(SYS_accept4, SYS_accept),
	ROW(SYS_pipe, SYS_pipe2),
	ROW(SYS_pipe2, SYS_pipe),
	ROW(SYS_dup, SYS_dup2, SYS_dup3),
	ROW(SYS_dup2, SYS_dup3),
	ROW(SYS_dup3, SYS_dup2),
	ROW(SYS_poll, SYS_ppoll),
	ROW(SYS_ppoll, SYS_poll),
	ROW(SYS_select, SYS_pselect6),
	ROW(SYS_pselect6, SYS_select),
	ROW(SYS_epoll_create, SYS_epoll_create1),
	ROW(SYS_epoll_create1, SYS_epoll_create),
	ROW(SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2),
	ROW(SYS_epoll_pwait, SYS_epoll_wait, SYS_epoll_pwait2),
	ROW(SYS_eventfd, SYS_eventfd2),
	ROW(SYS_eventfd2, SYS_eventfd),
	ROW(SYS_signalfd, SYS_signalfd4),
	ROW(SYS_signalfd4, SYS_signalfd),
	ROW(SYS_inotify_init, SYS_inotify_init1),
	ROW(SYS_inotify_init1, SYS_inotify_init),
	ROW(SYS_getdents, SYS_getdents64),
	ROW(SYS_getdents64, SYS_getdents),
	ROW(SYS_clone, SYS_fork, SYS_vfork, SYS_clone3),
	ROW(SYS_fork, SYS_clone, SYS_vfork, SYS_clone3),
	ROW(SYS_vfork, SYS_clone, SYS_fork, SYS_clone3),
	ROW(SYS_clone3, SYS_clone, SYS_fork, SYS_vfork),
	ROW(SYS_execve, SYS_execveat),
	ROW(SYS_execveat, SYS_execve),
	ROW(SYS_wait4, SYS_waitid),
	ROW(SYS_waitid, SYS_wait4),
	ROW(SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal),
	ROW(SYS_tkill, SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal),
	ROW(SYS_tgkill, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal),
	ROW(SYS_setrlimit, SYS_prlimit64),
	ROW(SYS_getrlimit, SYS_prlimit64),
	ROW(SYS_nanosleep, SYS_clock_nanosleep),
	ROW(SYS_gettimeofday, SYS_clock_gettime, SYS_time),
	ROW(SYS_clock_gettime, SYS_gettimeofday, SYS_time),
	ROW(SYS_mprotect, SYS_pkey_mprotect),
};

const uint32_t *also_reached_by(uint32_t nr)
{
	static const uint32_t nobody;

	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (families[i].nr == nr)
			return families[i].others;
	return &nobody;
}
