//! Where a path argument starts.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use arc_swap::Guard;
use lind_abi::{DirFd, Errno, Fd, Result};

use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::root::Directory;

/// A directory that stays open for a call.
pub(crate) enum Start {
    /// A working directory.
    Cwd(Guard<Arc<Directory>>),
    /// A descriptor's. With an empty path it may be any file.
    File(FileRef),
}

impl AsFd for Start {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Start::Cwd(directory) => directory.as_fd(),
            Start::File(file) => file.host(),
        }
    }
}

impl Ctx<'_> {
    /// The directory argument of a call that has none: the working directory.
    #[inline]
    pub(crate) fn here(&self) -> DirFd {
        DirFd { number: libc::AT_FDCWD, cage: self.cage.id }
    }

    /// The directory that `path` starts at. An absolute path starts nowhere, so that `dir` may be anything.
    ///
    /// # Errors
    /// ENOENT for an empty path, EBADF; ENOTDIR for what was not opened by a name inside the root.
    #[inline]
    pub(crate) fn start(&self, dir: DirFd, path: &CStr) -> Result<Start> {
        let cage = self.owner(dir.cage)?;
        match path.to_bytes().first() {
            None => return Err(Errno::ENOENT),
            Some(b'/') => return Ok(Start::Cwd(cage.cwd.load())),
            Some(_) if dir.number == libc::AT_FDCWD => return Ok(Start::Cwd(cage.cwd.load())),
            Some(_) => {}
        }
        let file = cage.fds.get(dir.number)?;
        if matches!(file.kind, Kind::Named) { Ok(Start::File(file)) } else { Err(Errno::ENOTDIR) }
    }

    /// What an empty path with AT_EMPTY_PATH means: the file itself.
    ///
    /// # Errors
    /// EBADF.
    pub(crate) fn itself(&self, dir: DirFd) -> Result<Start> {
        if dir.number == libc::AT_FDCWD {
            return Ok(Start::Cwd(self.owner(dir.cage)?.cwd.load()));
        }
        self.file(Fd { number: dir.number, cage: dir.cage }).map(Start::File)
    }
}
