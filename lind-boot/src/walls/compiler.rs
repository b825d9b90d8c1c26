//! The walls around the compiler process: it may use the cache's directory, memory and processor
//! time, and nothing else.
//!
//! The process signs machine code, so whatever a module does to the compiler, nothing but code may
//! leave the process: it has no other file, no network, no program to start and no process to
//! signal.

use std::os::fd::BorrowedFd;

use anyhow::{Context, Result};
use lind_engine::Wall;
use rustix::thread::CapabilitySet;

use super::files;
use super::seccomp::{self, Test};

/// The calls that are allowed with any arguments.
const ALLOWED: &[i64] = &[
    // Files that are handed to it, and the cache.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_fstatfs,
    libc::SYS_getdents64,
    libc::SYS_renameat,
    libc::SYS_unlinkat,
    libc::SYS_ftruncate,
    libc::SYS_memfd_create,
    // The sockets on which requests come.
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_poll,
    libc::SYS_ppoll,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // Threads and time.
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    // This process itself.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
];

const F_SETSIG: u32 = 10;

/// The calls that are allowed by one argument.
const BY_ARGUMENT: &[(i64, u8, Test)] = &[
    (libc::SYS_clone, 0, Test::Has(libc::CLONE_THREAD as u32)),
    // An abort of the process.
    (libc::SYS_tgkill, 0, Test::Ourselves),
    (libc::SYS_prlimit64, 2, Test::Null),
    (
        libc::SYS_fcntl,
        1,
        Test::OneOf(&[
            libc::F_DUPFD_CLOEXEC as u32,
            libc::F_GETFD as u32,
            libc::F_SETLEASE as u32,
            libc::F_ADD_SEALS as u32,
            F_SETSIG,
        ]),
    ),
];

/// Puts up the walls around the process, before its first request. Its children inherit them.
pub fn around(cache: Option<BorrowedFd<'_>>, delivered: Option<BorrowedFd<'_>>) -> Vec<Wall> {
    let landlock = Wall::new("landlock", files::restrict_to_cache(cache, delivered).map(drop));
    vec![landlock, Wall::new("capabilities", drop_capabilities())]
}

/// Puts up the walls around a child, before it reads a module. The process itself reads none.
pub fn child() -> Vec<Wall> {
    vec![Wall::new("seccomp", filter())]
}

/// Drops all capabilities but the one that root needs to use a cache in another user's home
/// directory.
fn drop_capabilities() -> Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.effective &= CapabilitySet::DAC_OVERRIDE;
    sets.permitted &= CapabilitySet::DAC_OVERRIDE;
    sets.inheritable = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, sets)?;
    Ok(())
}

fn filter() -> Result<()> {
    seccompiler::apply_filter(&seccomp::filter_of(ALLOWED, BY_ARGUMENT)?).context("cannot install the seccomp filter")
}
