//! The rows of the table as data, the errnos of missing calls, and the special results of handlers.

use crate::errno::Errno;
use crate::flags::*;
use crate::layout::*;
use crate::types::*;

/// One row, as data.
#[derive(Debug)]
pub struct Syscall {
    /// The number.
    pub nr: u32,
    /// The area: the folder of its function and the class for `strace -e trace=%area`.
    pub area: &'static str,
    /// Linux's name.
    pub name: &'static str,
    /// The arguments: name and kind.
    pub args: &'static [(&'static str, Kind)],
    /// The result.
    pub ret: Kind,
    /// Differences from Linux, for the documentation.
    pub notes: &'static [&'static str],
    /// True if the kernel implements the call.
    pub implemented: bool,
}

/// A registration for this number covers every number whose calls go where the registering grate's
/// own calls of it go (so that it can forward them), except exit, exit_group, rt_sigreturn and the
/// interposition calls.
pub const NR_ANY: u32 = u32::MAX;

/// Result of a handler that has written a `struct lind_answer` behind the call it was given. No
/// call has this result.
pub const ANSWER: i64 = i64::MIN;

/// Result of a handler that lets the call go on unchanged and needs nothing more of it. No call has
/// this result.
pub const PASS: i64 = i64::MIN + 1;

/// Result of a filter that leaves the decision to the handler. No call has this result.
pub const ASK: i64 = i64::MIN + 2;

/// The row of a number.
pub fn syscall(nr: u32) -> Option<&'static Syscall> {
    SYSCALLS
        .binary_search_by_key(&nr, |row| row.nr)
        .ok()
        .map(|at| &SYSCALLS[at])
        .or_else(|| MISSING.binary_search_by_key(&nr, |row| row.nr).ok().map(|at| &MISSING[at]))
}

/// The row of a name.
pub fn syscall_named(name: &str) -> Option<&'static Syscall> {
    SYSCALLS.iter().chain(MISSING).find(|row| row.name == name)
}

/// The errno for a call that the kernel does not implement. Calls that change the machine, mounts,
/// namespaces or another process from outside fail with EPERM, as they do without the capability:
/// programs go on without them. All others fail with ENOSYS, as on a kernel without the call.
pub const fn absent(nr: u32) -> Errno {
    match nr {
        nr::ptrace | nr::process_vm_readv | nr::process_vm_writev | nr::kcmp => Errno::EPERM,
        nr::pivot_root | nr::mount | nr::umount2 | nr::setns => Errno::EPERM,
        nr::open_tree | nr::move_mount | nr::fsopen | nr::fsconfig | nr::fsmount | nr::fspick => Errno::EPERM,
        nr::mount_setattr | nr::open_by_handle_at | nr::fanotify_init | nr::quotactl | nr::quotactl_fd => Errno::EPERM,
        nr::settimeofday | nr::clock_settime | nr::adjtimex | nr::clock_adjtime => Errno::EPERM,
        nr::acct | nr::swapon | nr::swapoff | nr::reboot | nr::vhangup | nr::syslog | nr::iopl | nr::ioperm => {
            Errno::EPERM
        }
        nr::init_module | nr::finit_module | nr::delete_module | nr::kexec_load | nr::kexec_file_load => Errno::EPERM,
        _ => Errno::ENOSYS,
    }
}

macro_rules! rows {
    (@row $implemented:literal $(#[doc = $note:literal])* $nr:literal $area:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        Syscall {
            nr: $nr,
            area: stringify!($area),
            name: stringify!($name),
            args: &[$((stringify!($arg), <$ty as ArgType>::KIND)),*],
            ret: <$ret as RetType>::KIND,
            notes: &[$($note),*],
            implemented: $implemented,
        }
    };
    (
        implemented { $($(#[doc = $note:literal])* $nr:literal $area:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)* }
        missing { $($(#[doc = $mnote:literal])* $mnr:literal $marea:ident $mname:ident($($marg:ident: $mty:ty),*) -> $mret:ty;)* }
    ) => {
        /// The calls the kernel has, by ascending number.
        pub static SYSCALLS: &[Syscall] = &[
            $(rows!(@row true $(#[doc = $note])* $nr $area $name($($arg: $ty),*) -> $ret)),*
        ];
        /// The calls it does not have, by ascending number.
        pub static MISSING: &[Syscall] = &[
            $(rows!(@row false $(#[doc = $mnote])* $mnr $marea $mname($($marg: $mty),*) -> $mret)),*
        ];
        /// The numbers by name.
        #[allow(missing_docs)]
        pub mod nr {
            $(#[allow(non_upper_case_globals)] pub const $name: u32 = $nr;)*
            $(#[allow(non_upper_case_globals)] pub const $mname: u32 = $mnr;)*
        }
    };
}
crate::for_each_syscall!(rows);

/// Both lists ascend, and no number is in both.
const _: () = {
    let mut i = 1;
    while i < SYSCALLS.len() {
        assert!(SYSCALLS[i - 1].nr < SYSCALLS[i].nr);
        i += 1;
    }
    let mut i = 1;
    while i < MISSING.len() {
        assert!(MISSING[i - 1].nr < MISSING[i].nr);
        i += 1;
    }
    let (mut i, mut j) = (0, 0);
    while i < SYSCALLS.len() && j < MISSING.len() {
        assert!(SYSCALLS[i].nr != MISSING[j].nr);
        if SYSCALLS[i].nr < MISSING[j].nr {
            i += 1;
        } else {
            j += 1;
        }
    }
};
