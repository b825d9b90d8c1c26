//! Directories that stay open.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::OFlags;

use super::Root;
use crate::host;
use crate::procfs::Place;

/// A directory that stays open: a working directory.
pub struct Directory {
    fd: OwnedFd,
    /// Where it is, if it is one of the kernel's own; `fd` is then the root.
    place: Option<Place>,
}

impl Directory {
    /// Takes over an open directory inside the root.
    pub fn new(fd: OwnedFd) -> Directory {
        Directory { fd, place: None }
    }

    /// Where the first cage starts.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn open(root: &Root, path: &CStr) -> Result<Directory> {
        let flags = (OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC).bits();
        root.open(root.directory(), path, flags, 0).map(Directory::new)
    }

    /// A directory of the kernel's own. The host is told of the root instead.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn ours(root: &Root, place: Place) -> Result<Directory> {
        let fd = rustix::io::fcntl_dupfd_cloexec(root.directory(), 3).map_err(host::errno)?;
        Ok(Directory { fd, place: Some(place) })
    }

    /// Where it is, if it is one of the kernel's own.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Its path, as a guest would spell it.
    ///
    /// # Errors
    /// As for [`Root::path_of`].
    pub(crate) fn path(&self, root: &Root) -> Result<CString> {
        match &self.place {
            Some(place) => CString::new(place.path()).map_err(|_| Errno::ENOENT),
            None => root.path_of(self.as_fd()),
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
