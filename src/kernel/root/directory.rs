//! Directories that stay open.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::OFlags;

use super::Root;
use super::table::{Dir, Found, MountId};
use crate::host;
use crate::procfs::Place;

/// A directory that stays open: a working directory.
pub struct Directory {
    fd: OwnedFd,
    mount: MountId,
    /// The place, if it is one of the kernel's own; `fd` is then the root.
    place: Option<Place>,
}

impl Directory {
    /// Takes over an open directory inside the root.
    pub fn new(found: Found) -> Directory {
        Directory { fd: found.file, mount: found.mount, place: None }
    }

    /// Opens the directory in which the first cage starts.
    ///
    /// # Errors
    /// The errors of open(2).
    pub fn open(root: &Root, path: &CStr) -> Result<Directory> {
        let flags = (OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC).bits();
        root.open(root.top(), path, flags, 0).map(Directory::new)
    }

    /// A directory of the kernel's own. The host's descriptor refers to the root instead.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn ours(root: &Root, place: Place) -> Result<Directory> {
        let fd = rustix::io::fcntl_dupfd_cloexec(root.directory(), 3).map_err(host::errno)?;
        Ok(Directory { fd, mount: MountId::ROOT, place: Some(place) })
    }

    /// The mount it is in.
    pub(crate) fn mount(&self) -> MountId {
        self.mount
    }

    /// The directory as the start of a look-up.
    pub fn dir(&self) -> Dir<'_> {
        Dir::new(self.as_fd(), self.mount)
    }

    /// The place, if it is one of the kernel's own.
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
            None => root.path_of(self.dir()),
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
