//! inotify(7).

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use lind_abi::{Errno, Result};
use syscalls::{Sysno, raw_syscall};

use super::{place, raw, result};

/// inotify_init1(2)
pub fn init(flags: u32) -> Result<OwnedFd> {
    // SAFETY: takes no address.
    let fd = result(unsafe { raw_syscall!(Sysno::inotify_init1, flags as usize) })?;
    let fd = i32::try_from(fd).map_err(|_| Errno::EMFILE)?;
    // SAFETY: the host has just made this descriptor for the caller, and its number is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// inotify_add_watch(2) of a name in a directory. A link is followed.
pub fn add(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr, mask: u32) -> Result<i32> {
    let watch = place::below(dir, || {
        // SAFETY: the host reads the name.
        result(unsafe { raw_syscall!(Sysno::inotify_add_watch, raw(fd), name.as_ptr() as usize, mask as usize) })
    })?;
    i32::try_from(watch).map_err(|_| Errno::ENOSPC)
}

/// inotify_rm_watch(2)
pub fn remove(fd: BorrowedFd<'_>, watch: i32) -> Result<()> {
    // SAFETY: takes no address.
    result(unsafe { raw_syscall!(Sysno::inotify_rm_watch, raw(fd), watch.cast_unsigned() as usize) }).map(drop)
}
