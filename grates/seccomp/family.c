/*
 * Calls that do what another does. A rule that restricts a call restricts these too, unless it says
 * `exact`: who forbids open means that files are not opened, not that one number is not used.
 */
#include "seccomp.h"

#define LIST(...) (const uint32_t[]){ __VA_ARGS__, 0 }

/* Each does what the others do. */
static const uint32_t *const alike[] = {
	LIST(SYS_open, SYS_openat, SYS_openat2, SYS_creat),
	LIST(SYS_stat, SYS_newfstatat, SYS_statx, SYS_lstat),
	LIST(SYS_statfs, SYS_fstatfs),
	LIST(SYS_access, SYS_faccessat, SYS_faccessat2),
	LIST(SYS_mkdir, SYS_mkdirat),
	LIST(SYS_mknod, SYS_mknodat),
	LIST(SYS_rename, SYS_renameat, SYS_renameat2),
	LIST(SYS_link, SYS_linkat),
	LIST(SYS_symlink, SYS_symlinkat),
	LIST(SYS_readlink, SYS_readlinkat),
	LIST(SYS_chmod, SYS_fchmod, SYS_fchmodat, SYS_fchmodat2),
	LIST(SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat),
	LIST(SYS_utime, SYS_utimes, SYS_futimesat, SYS_utimensat),
	LIST(SYS_truncate, SYS_ftruncate),
	LIST(SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr),
	LIST(SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr),
	LIST(SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr),
	LIST(SYS_listxattr, SYS_llistxattr, SYS_flistxattr),
	LIST(SYS_chdir, SYS_fchdir),
	LIST(SYS_fsync, SYS_fdatasync),
	LIST(SYS_sync, SYS_syncfs),
	LIST(SYS_sendto, SYS_sendmsg, SYS_sendmmsg),
	LIST(SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg),
	LIST(SYS_accept, SYS_accept4),
	LIST(SYS_pipe, SYS_pipe2),
	LIST(SYS_dup2, SYS_dup3),
	LIST(SYS_poll, SYS_ppoll),
	LIST(SYS_select, SYS_pselect6),
	LIST(SYS_epoll_create, SYS_epoll_create1),
	LIST(SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2),
	LIST(SYS_eventfd, SYS_eventfd2),
	LIST(SYS_signalfd, SYS_signalfd4),
	LIST(SYS_inotify_init, SYS_inotify_init1),
	LIST(SYS_getdents, SYS_getdents64),
	LIST(SYS_clone, SYS_fork, SYS_vfork, SYS_clone3),
	LIST(SYS_execve, SYS_execveat),
	LIST(SYS_wait4, SYS_waitid),
	LIST(SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal),
	LIST(SYS_setuid, SYS_setreuid, SYS_setresuid, SYS_setfsuid),
	LIST(SYS_setgid, SYS_setregid, SYS_setresgid, SYS_setfsgid),
	LIST(SYS_getpgid, SYS_getpgrp),
	LIST(SYS_nanosleep, SYS_clock_nanosleep),
	LIST(SYS_gettimeofday, SYS_clock_gettime, SYS_time),
	LIST(SYS_alarm, SYS_setitimer),
	LIST(SYS_semop, SYS_semtimedop),
};

/* More or less than each other, but all of them take a name away. */
static const uint32_t *const removing = LIST(SYS_unlink, SYS_unlinkat, SYS_rmdir);

/* The first is done by the others, which do more or less than it. */
#define ROW(nr, ...) { nr, LIST(__VA_ARGS__) }
static const struct {
	uint32_t nr;
	const uint32_t *others;
} one_way[] = {
	ROW(SYS_fstat, SYS_newfstatat, SYS_statx),
	ROW(SYS_rmdir, SYS_unlinkat),
	ROW(SYS_unlink, SYS_unlinkat),
	ROW(SYS_unlinkat, SYS_unlink, SYS_rmdir),
	ROW(SYS_close, SYS_close_range),
	ROW(SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_preadv2, SYS_sendfile, SYS_splice, SYS_copy_file_range),
	ROW(SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2, SYS_sendfile, SYS_splice, SYS_tee,
	    SYS_vmsplice, SYS_copy_file_range),
	ROW(SYS_dup, SYS_dup2, SYS_dup3),
	ROW(SYS_setrlimit, SYS_prlimit64),
	ROW(SYS_getrlimit, SYS_prlimit64),
	ROW(SYS_getuid, SYS_getresuid),
	ROW(SYS_geteuid, SYS_getresuid),
	ROW(SYS_getresuid, SYS_getuid, SYS_geteuid),
	ROW(SYS_getgid, SYS_getresgid),
	ROW(SYS_getegid, SYS_getresgid),
	ROW(SYS_getresgid, SYS_getgid, SYS_getegid),
	ROW(SYS_sched_setparam, SYS_sched_setscheduler, SYS_sched_setattr),
	ROW(SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr),
	ROW(SYS_sched_getparam, SYS_sched_getattr),
	ROW(SYS_sched_getscheduler, SYS_sched_getattr),
	ROW(SYS_mprotect, SYS_pkey_mprotect),
	ROW(SYS_madvise, SYS_process_madvise),
	ROW(SYS_mlock, SYS_mlock2, SYS_mlockall),
	ROW(SYS_mlock2, SYS_mlock, SYS_mlockall),
	ROW(SYS_munlock, SYS_munlockall),
};

static bool has(const uint32_t *list, uint32_t nr)
{
	while (*list && *list != nr)
		list++;
	return *list;
}

const uint32_t *learned_with(uint32_t nr)
{
	static const uint32_t nobody;

	for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
		if (has(alike[i], nr))
			return alike[i];
	return has(removing, nr) ? removing : &nobody;
}

const uint32_t *also_reached_by(uint32_t nr)
{
	static const uint32_t nobody;

	for (size_t i = 0; i < sizeof one_way / sizeof *one_way; i++)
		if (one_way[i].nr == nr)
			return one_way[i].others;
	for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
		if (has(alike[i], nr))
			return alike[i];
	return &nobody;
}
