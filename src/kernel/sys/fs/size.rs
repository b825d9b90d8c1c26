//! How long files are, and when what was written is on disk.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::flags::{Fadvice, FallocateMode, OpenFlags};
use lind_abi::{Errno, Fd, Len, Off, Path, Result};
use rustix::fs::{FallocateFlags, FileType, OFlags};

use super::watched;
use super::writing::unless_leased;
use crate::call::Ctx;
use crate::fd::locks::FileId;
use crate::fd::{File, Kind};
use crate::host;
use crate::mem::PathBytes;
use crate::procfs::Reached;
use crate::root::Last;

/// truncate(2)
pub(crate) fn truncate(cx: &Ctx<'_>, path: Path, len: Off) -> Result<()> {
    let len = length(len)?;
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    // The host has no such call that starts at a directory. A fifo must not make us wait.
    let flags = OpenFlags::O_WRONLY | OpenFlags::O_NONBLOCK;
    let checked = |file: Result<OwnedFd>| {
        let file = file?;
        cx.kernel.busy.check(FileId::of(file.as_fd())?).map(|()| file)
    };
    let set = |file: Result<OwnedFd>| match checked(file) {
        Ok(file) if cx.cage.fds.is_watched() => {
            let file = File::new(file, Kind::Named);
            watched::before_growing(cx, &file, len)?;
            rustix::fs::ftruncate(file.host(), len).map_err(host::errno)
        }
        Ok(file) => rustix::fs::ftruncate(file, len).map_err(host::errno),
        // Nobody reads the fifo, or it is a socket.
        Err(Errno::ENXIO) => Err(Errno::EINVAL),
        Err(errno) => Err(errno),
    };
    let root = &cx.kernel.root;
    let on_host = |dir: BorrowedFd<'_>, path: &CStr| {
        match set(unless_leased(cx, flags, || root.open(dir, path, flags, 0))) {
            // What it is comes before who may write to it.
            Err(Errno::EACCES) if is_special(cx, dir, path) => Err(Errno::EINVAL),
            result => result,
        }
    };
    let again = |file: BorrowedFd<'_>| set(unless_leased(cx, flags, || root.open_again(file, flags)));
    cx.act(cx.here(), path, Last::Follow, on_host, |reached| match reached {
        Reached::Place(place) if place.is_directory() => Err(Errno::EISDIR),
        Reached::Place(place) => again(place.memory(cx).ok_or(Errno::EACCES)?.1.host()),
        Reached::File(file) if matches!(file.kind, Kind::Named) => again(file.host()),
        Reached::File(_) => Err(Errno::EACCES),
        _ => Err(Errno::ENOENT),
    })
}

/// Whether a path leads to what is neither a file nor a directory.
fn is_special(cx: &Ctx<'_>, dir: BorrowedFd<'_>, path: &CStr) -> bool {
    let stat = cx
        .kernel
        .root
        .open(dir, path, OFlags::PATH.bits(), 0)
        .and_then(|it| rustix::fs::fstat(it).map_err(host::errno));
    stat.is_ok_and(|stat| !matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Directory))
}

/// ftruncate(2)
pub(crate) fn ftruncate(cx: &Ctx<'_>, fd: Fd, len: Off) -> Result<()> {
    let len = length(len)?;
    // The limit is that of the cage the call acts on, whosever descriptor it is.
    if cx.cage.fds.is_watched() {
        watched::before_growing(cx, &*cx.file(fd)?, len)?;
    }
    rustix::fs::ftruncate(cx.host_fd(fd)?.as_fd(), len).map_err(host::errno)
}

/// fallocate(2)
pub(crate) fn fallocate(cx: &Ctx<'_>, fd: Fd, mode: FallocateMode, offset: Off, len: Off) -> Result<()> {
    let file = cx.file(fd)?;
    let (offset, len) = (length(offset)?, length(len)?);
    if cx.cage.fds.is_watched() {
        watched::before_growing(cx, &file, offset.saturating_add(len))?;
    }
    cx.blocking(|| {
        rustix::fs::fallocate(file.host(), FallocateFlags::from_bits_retain(mode.0), offset, len).map_err(host::errno)
    })
}

/// fsync(2)
pub(crate) fn fsync(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    rustix::fs::fsync(cx.host_fd(fd)?.as_fd()).map_err(host::errno)
}

/// fdatasync(2)
pub(crate) fn fdatasync(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    rustix::fs::fdatasync(cx.host_fd(fd)?.as_fd()).map_err(host::errno)
}

/// sync(2): of the file system that holds the root.
pub(crate) fn sync(cx: &Ctx<'_>) -> Result<()> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
    if let Ok(root) = cx.kernel.root.open(cx.kernel.root.directory(), c"/", flags.bits(), 0) {
        let _ = rustix::fs::syncfs(root);
    }
    Ok(())
}

/// syncfs(2)
pub(crate) fn syncfs(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    rustix::fs::syncfs(cx.host_fd(fd)?.as_fd()).map_err(host::errno)
}

/// sync_file_range(2)
pub(crate) fn sync_file_range(cx: &Ctx<'_>, fd: Fd, offset: Off, len: Off, flags: u32) -> Result<()> {
    let file = cx.file(fd)?;
    cx.blocking(|| host::fs::sync_range(file.host(), offset.0, len.0, flags))
}

/// posix_fadvise(2)
pub(crate) fn fadvise64(cx: &Ctx<'_>, fd: Fd, offset: Off, len: Off, advice: Fadvice) -> Result<()> {
    host::fs::fadvise(cx.host_fd(fd)?.as_fd(), offset.0, len.0, advice.0)
}

/// readahead(2)
pub(crate) fn readahead(cx: &Ctx<'_>, fd: Fd, offset: Off, len: Len) -> Result<()> {
    let len = i64::try_from(len.0).map_err(|_| Errno::EINVAL)?;
    let file = cx.file(fd)?;
    if rustix::fs::fcntl_getfl(file.host()).map_err(host::errno)? & rustix::fs::OFlags::RWMODE
        == rustix::fs::OFlags::WRONLY
    {
        return Err(Errno::EBADF);
    }
    host::fs::fadvise(file.host(), offset.0, len, Fadvice::POSIX_FADV_WILLNEED)
}

fn length(value: Off) -> Result<u64> {
    u64::try_from(value.0).map_err(|_| Errno::EINVAL)
}
