//! Receives signals from outside in a process that runs no guest of its own and passes them on.

#![allow(unsafe_code)]

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use lind_kernel::cage::signal::Origin;

use super::host_signals::{ENDING, origin_of, set, set_of};

/// The signals from outside for a process without guests of its own: it represents a guest in
/// another runner.
pub struct Outside(OwnedFd);

impl Outside {
    /// Blocks them from now on, for the calling thread and those that it starts.
    ///
    /// # Errors
    /// The host's error.
    pub fn hold() -> std::io::Result<Outside> {
        Outside::of(set())
    }

    /// Blocks only those with which people end programs.
    ///
    /// # Errors
    /// The host's error.
    pub fn hold_ending() -> std::io::Result<Outside> {
        Outside::of(set_of(&ENDING))
    }

    fn of(set: libc::sigset_t) -> std::io::Result<Outside> {
        // SAFETY: the set is initialised; signalfd returns a new descriptor or -1.
        let fd = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and owned by nobody else.
        Ok(Outside(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal that has come, and its origin.
    pub fn next(&self) -> Option<(u8, Origin)> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&self.0, &mut bytes).ok().filter(|&count| count == bytes.len())?;
        let word =
            |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, i32::from_ne_bytes);
        let number = word(offset_of!(libc::signalfd_siginfo, ssi_signo));
        let code = word(offset_of!(libc::signalfd_siginfo, ssi_code));
        Some((u8::try_from(number).ok()?, origin_of(number, code)))
    }
}

impl AsFd for Outside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
