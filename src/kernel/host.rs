//! Host calls that take guest addresses, and the conversion of host errors to errno.
//!
//! A guest address reaches the host as a [`HostRange`](crate::mem::HostRange), which lies inside a
//! reservation that lives as long as the cage. The host kernel answers EFAULT for unmapped pages,
//! so nothing here can fault.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use lind_abi::{Errno, Result};
use syscalls::{Sysno, raw_syscall};

use crate::mem::HostRange;

pub mod clock;
pub mod control;
pub mod fs;
pub mod futex;
pub mod identity;
pub mod inotify;
pub mod keep;
pub mod lease;
pub mod mounts;
pub mod net;
pub mod pagemap;
pub mod place;
pub mod requests;
pub mod terminal;
pub mod wait;
pub mod xattr;

/// The longest path of Linux, the NUL included.
pub const PATH_MAX: usize = 4096;

/// The errno of a rustix error.
pub fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// The result of a raw host call.
#[inline(always)]
fn result(raw: usize) -> Result<usize> {
    let signed = raw.cast_signed();
    if (-4095..0).contains(&signed) {
        std::hint::cold_path();
        Err(Errno::from_raw(i32::try_from(-signed).unwrap_or(5)))
    } else {
        Ok(raw)
    }
}

#[inline(always)]
fn raw(fd: BorrowedFd<'_>) -> usize {
    fd.as_raw_fd().cast_unsigned() as usize
}

/// read(2) into guest memory.
#[inline(always)]
pub fn read(fd: BorrowedFd<'_>, buf: HostRange) -> Result<usize> {
    // SAFETY: the host writes only inside `buf`, a range of a guest's reservation that Rust holds
    // no reference into.
    result(unsafe { raw_syscall!(Sysno::read, raw(fd), buf.as_ptr() as usize, buf.len()) })
}

/// write(2) from guest memory.
#[inline(always)]
pub fn write(fd: BorrowedFd<'_>, buf: HostRange) -> Result<usize> {
    // SAFETY: the host only reads inside `buf`, a range of a guest's reservation.
    result(unsafe { raw_syscall!(Sysno::write, raw(fd), buf.as_ptr() as usize, buf.len()) })
}

/// pread(2) into guest memory.
#[inline(always)]
pub fn pread(fd: BorrowedFd<'_>, buf: HostRange, offset: i64) -> Result<usize> {
    // SAFETY: as for `read`.
    result(unsafe { raw_syscall!(Sysno::pread64, raw(fd), buf.as_ptr() as usize, buf.len(), offset.cast_unsigned()) })
}

/// pwrite(2) from guest memory.
#[inline(always)]
pub fn pwrite(fd: BorrowedFd<'_>, buf: HostRange, offset: i64) -> Result<usize> {
    // SAFETY: as for `write`.
    result(unsafe { raw_syscall!(Sysno::pwrite64, raw(fd), buf.as_ptr() as usize, buf.len(), offset.cast_unsigned()) })
}

/// A descriptor that a thread has announced, for host calls.
#[inline(always)]
pub fn in_use<'a>(used: &'a crate::fd::InUse<'_>) -> BorrowedFd<'a> {
    // SAFETY: a descriptor that is in use is closed only after the `InUse` is gone (`fd::in_use`).
    unsafe { BorrowedFd::borrow_raw(used.number()) }
}

/// Registers this process for [`barrier`]; false if the host has none.
pub fn barrier_register() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;
    // SAFETY: the call takes no address.
    result(unsafe { raw_syscall!(Sysno::membarrier, REGISTER_PRIVATE_EXPEDITED, 0usize, 0usize) }).is_ok()
}

/// membarrier(2): every other running thread of this process passes a full memory barrier before
/// this returns. Without the host's help it is a barrier for the calling thread only, which
/// suffices if the others use exchanges; then the result is false.
pub fn barrier() -> bool {
    const PRIVATE_EXPEDITED: usize = 1 << 3;
    // SAFETY: the call takes no address.
    let done = result(unsafe { raw_syscall!(Sysno::membarrier, PRIVATE_EXPEDITED, 0usize, 0usize) }).is_ok();
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    done
}

/// A copy of a descriptor that the process was started with.
///
/// # Errors
/// EBADF if it is not open.
pub fn own_again(number: u32) -> Result<OwnedFd> {
    let (command, number) = (libc::F_DUPFD_CLOEXEC as usize, number as usize);
    // SAFETY: the call takes no address.
    let copy = result(unsafe { raw_syscall!(Sysno::fcntl, number, command, 3usize) })?;
    let copy = i32::try_from(copy).map_err(|_| Errno::EMFILE)?;
    // SAFETY: the host has just made this descriptor for the caller, and its number is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Closes the descriptors with these numbers. To be called while this process has opened none of
/// them itself.
pub fn close_numbers(first: u32, last: u32) {
    // SAFETY: the call takes no address, and nothing in this process owns such a descriptor.
    let _ = result(unsafe { raw_syscall!(Sysno::close_range, first as usize, last as usize, 0usize) });
}

/// Gives the calling thread a descriptor table of its own, without standard input and output and
/// without descriptors from `first` on.
pub fn close_own_from(first: u32) {
    const CLOSE_RANGE_UNSHARE: usize = 2;
    for (first, last, flags) in [(first, u32::MAX, CLOSE_RANGE_UNSHARE), (0, 1, 0)] {
        // SAFETY: the call takes no address; the caller's thread uses no descriptor of Rust's from
        // here on.
        let _ = result(unsafe { raw_syscall!(Sysno::close_range, first as usize, last as usize, flags) });
    }
}
