//! How guest paths are kept inside the guest's root.
//!
//! With the rights for it the runner changes its own root before any guest runs, and the host then
//! resolves guest paths as they are. The rest of the kernel only says which directory and which path.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{Mode, OFlags};

use crate::host;

/// A directory that stays open: a working directory.
pub struct Directory(OwnedFd);

impl Directory {
    /// Takes over an open directory inside the root.
    pub fn new(fd: OwnedFd) -> Directory {
        Directory(fd)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What keeps guests inside the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walls {
    /// The process has changed its root: host resolution cannot leave it.
    Chroot,
    /// Every look-up is confined by openat2(2).
    Openat2,
}

/// The guest's root directory.
pub struct Root {
    directory: OwnedFd,
    walls: Walls,
}

impl Root {
    /// The root is `directory` (opened with O_PATH), kept by `walls`.
    pub fn new(directory: OwnedFd, walls: Walls) -> Root {
        Root { directory, walls }
    }

    /// The root directory itself.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// What keeps guests inside.
    pub fn walls(&self) -> Walls {
        self.walls
    }

    /// openat(2) inside the root. `flags` and `mode` are the host's.
    ///
    /// # Errors
    /// What openat(2) says.
    pub fn open(&self, dir: BorrowedFd<'_>, path: &CStr, flags: u32, mode: u32) -> Result<OwnedFd> {
        let flags = OFlags::from_bits_retain(flags) | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        match self.walls {
            Walls::Chroot => rustix::fs::openat(dir, path, flags, mode).map_err(host::errno),
            Walls::Openat2 => Err(Errno::ENOSYS),
        }
    }
}
