//! The walls around the process that compiles: the cache's directory, memory, processor time, and nothing else.
//!
//! It gives machine code its signature, so nothing may come out of it but that, whatever a module does to the compiler: no other file, no
//! network, no program, no signal to anybody.

use std::os::fd::BorrowedFd;

use anyhow::{Context, Result};
use lind_engine::Wall;
use rustix::thread::CapabilitySet;

use super::files;
use super::seccomp::{self, Test};

/// Whatever the arguments are.
const ALLOWED: &[i64] = &[
    // Files that it is given, and the cache.
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
    // Those who ask.
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

/// By one argument.
const BY_ARGUMENT: &[(i64, u8, Test)] = &[
    (libc::SYS_clone, 0, Test::Has(libc::CLONE_THREAD as u32)),
    // Of an abort.
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

/// Around the process, before it is asked for anything, and with that around its children.
pub fn around(cache: Option<BorrowedFd<'_>>) -> Vec<Wall> {
    let landlock = Wall::new("landlock", files::restrict_to_cache(cache).map(drop));
    vec![landlock, Wall::new("capabilities", drop_capabilities())]
}

/// Around a child, before it looks at a module: the process itself looks at none.
pub fn child() -> Vec<Wall> {
    vec![Wall::new("seccomp", filter())]
}

/// Keeps what it takes to use a cache that root has in a home directory of somebody else.
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
