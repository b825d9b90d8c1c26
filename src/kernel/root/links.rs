//! The links of /proc to the files that this process has open: their names, and a way to reach the
//! files again.
//!
//! The one directory of /proc that is kept open is that of this process's own threads, so that it
//! can name no other process.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{Mode, OFlags};
use rustix::path::DecInt;

use crate::host;

/// A directory, and how a thread finds itself in it.
pub(super) struct Links {
    directory: OwnedFd,
    /// Whether threads have the same numbers in it as they have themselves. A /proc of another
    /// namespace has other numbers, and all of it is needed then.
    own_numbers: bool,
}

impl Links {
    /// Opens the links in the host's /proc, if it is mounted.
    pub(super) fn find() -> Option<Links> {
        let open = |path: &CStr| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty()).ok()
        };
        let this = rustix::fs::readlink(c"/proc/thread-self", Vec::new()).ok()?;
        let (process, thread) = (rustix::process::getpid().as_raw_nonzero(), rustix::thread::gettid().as_raw_nonzero());
        let own_numbers = this.to_bytes() == format!("{process}/task/{thread}").as_bytes();
        let directory = open(if own_numbers { c"/proc/self/task" } else { c"/proc" })?;
        Some(Links { directory, own_numbers })
    }

    /// Makes sure that the directory leads nowhere else.
    ///
    /// # Errors
    /// As for a detached mount.
    pub(super) fn detach(&mut self) -> Result<()> {
        self.directory = host::mounts::detached(self.directory.as_fd(), true)?;
        Ok(())
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// `act` gets a directory and the name of a link in it that leads to the file.
    ///
    /// # Errors
    /// The errors of `act`.
    pub(super) fn again<T>(
        &self,
        file: BorrowedFd<'_>,
        act: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T>,
    ) -> Result<T> {
        // The links of this thread, not of the process: not all threads of the runner have the
        // cages' descriptors.
        let number = DecInt::new(rustix::thread::gettid().as_raw_nonzero().get());
        let thread = if self.own_numbers { number.as_bytes() } else { b"thread-self" };
        let link = [thread, b"/fd/", DecInt::from_fd(file).as_bytes()].concat();
        act(self.directory.as_fd(), &CString::new(link).map_err(|_| Errno::EINVAL)?)
    }
}
