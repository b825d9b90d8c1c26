//! Leases, which tell whether a file is open for writing.

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
        const F_SETSIG: i32 = 10;
        // A process that opens the file for writing makes the host send a signal, which is an
        // ignored one here.
        control(file, F_SETSIG, libc::SIGCHLD)?;
        control(file, libc::F_SETLEASE, libc::F_RDLCK)?;
        Ok(Lease(file))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let _ = control(self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

/// fcntl(2) with a number.
fn control(file: BorrowedFd<'_>, command: i32, value: i32) -> Result<()> {
    let (command, value) = (command.cast_unsigned() as usize, value.cast_unsigned() as usize);
    // SAFETY: the commands that are used here take numbers.
    result(unsafe { raw_syscall!(Sysno::fcntl, raw(file), command, value) }).map(drop)
}
