//! Leases, which tell whether a file is open for writing, and those that cages take.

use std::os::fd::BorrowedFd;

use lind_abi::Result;
use syscalls::{Sysno, raw_syscall};

use super::{raw, result};

/// A read lease on an open file. While it is held no process has the file open for writing: an open
/// for writing waits, here and elsewhere.
#[derive(Debug)]
pub struct Lease<'f>(BorrowedFd<'f>);

impl<'f> Lease<'f> {
    /// Takes the lease.
    ///
    /// # Errors
    /// EAGAIN: a process has the file open for writing, or mapped so. EACCES: it is another user's.
    /// EINVAL: its filesystem has no leases.
    pub fn take(file: BorrowedFd<'f>) -> Result<Lease<'f>> {
        set(file, libc::F_RDLCK)?;
        Ok(Lease(file))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let _ = control(self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

/// F_SETLEASE. This process ignores the signal that the host sends at an open elsewhere.
///
/// # Errors
/// The errors of fcntl(2).
pub fn set(file: BorrowedFd<'_>, kind: i32) -> Result<()> {
    const F_SETSIG: i32 = 10;
    control(file, F_SETSIG, libc::SIGCHLD)?;
    control(file, libc::F_SETLEASE, kind).map(drop)
}

/// F_GETLEASE: the kind of the lease, or if an open waits, the kind that it has to become.
///
/// # Errors
/// The errors of fcntl(2).
pub fn get(file: BorrowedFd<'_>) -> Result<i32> {
    control(file, libc::F_GETLEASE, 0)
}

/// fcntl(2) with a number.
fn control(file: BorrowedFd<'_>, command: i32, value: i32) -> Result<i32> {
    let (command, value) = (command.cast_unsigned() as usize, value.cast_unsigned() as usize);
    // SAFETY: the commands that are used here take numbers.
    let answer = result(unsafe { raw_syscall!(Sysno::fcntl, raw(file), command, value) })?;
    i32::try_from(answer).map_err(|_| lind_abi::Errno::EOVERFLOW)
}
