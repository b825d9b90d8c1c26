//! A working directory and umask for one host call.
//!
//! The host takes the path of a unix socket only relative to the working directory of the thread,
//! and returns the path of that directory faster than any other. Every other call names its
//! directory, so the working directory of a thread means nothing outside this module.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;

use lind_abi::Result;

use super::{errno, result};

thread_local! {
    /// Whether the calling thread shares its working directory and umask with no other thread that
    /// uses them. A thread created later shares its creator's again, but does not use them until it
    /// has called this module itself.
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// The path of a directory, as getcwd(2) returns it.
pub fn path(dir: BorrowedFd<'_>) -> Result<CString> {
    enter(dir)?;
    rustix::process::getcwd(Vec::new()).map_err(errno)
}

/// Runs `act` with `dir` as the working directory and `umask` as the umask of this thread alone.
pub fn at<T>(dir: BorrowedFd<'_>, umask: u32, act: impl FnOnce() -> Result<T>) -> Result<T> {
    enter(dir)?;
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    let outcome = act();
    rustix::process::umask(before);
    outcome
}

/// Runs `act` with `dir` as the working directory of this thread alone.
pub fn below<T>(dir: BorrowedFd<'_>, act: impl FnOnce() -> Result<T>) -> Result<T> {
    enter(dir)?;
    act()
}

/// truncate(2) of a name in a directory. A link is followed.
pub fn truncate(dir: BorrowedFd<'_>, name: &CStr, len: u64) -> Result<()> {
    enter(dir)?;
    let name = name.as_ptr() as usize;
    // SAFETY: the host reads the name.
    result(unsafe { syscalls::raw_syscall!(syscalls::Sysno::truncate, name, len) }).map(drop)
}

/// Makes `dir` the working directory of this thread alone.
fn enter(dir: BorrowedFd<'_>) -> Result<()> {
    if !OWN.get() {
        // SAFETY: from here on only this thread sees changes of its working directory and umask.
        result(unsafe { syscalls::raw_syscall!(syscalls::Sysno::unshare, libc::CLONE_FS.cast_unsigned() as usize) })?;
        OWN.set(true);
    }
    rustix::process::fchdir(dir).map_err(errno)
}
