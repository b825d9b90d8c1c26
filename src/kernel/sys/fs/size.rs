//! Sizes of files, and writing to disk: truncate(2), fallocate(2), fsync(2) and their relatives.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use lind_abi::flags::{Fadvice, FallocateMode, OpenFlags};
use lind_abi::{Errno, Fd, Len, Off, Path, Result};
use rustix::fs::FallocateFlags;

use super::watched;
use crate::call::{Ctx, PathBytes};
use crate::fd::Kind;
use crate::fd::locks::FileId;
use crate::host;
use crate::procfs::Reached;
use crate::root::Last;
use crate::root::table::Dir;

/// truncate(2)
pub(crate) fn truncate(cx: &Ctx<'_>, path: Path, len: Off) -> Result<()> {
    let len = length(len)?;
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let root = &cx.kernel.root;
    // The file is looked up first, and not opened: a watcher of inotify(7) sees that a file is
    // shortened, not that it is opened.
    let set = |file: Dir<'_>| {
        cx.kernel.root.check_writable(file.mount)?;
        let file = file.fd;
        cx.kernel.busy.check(FileId::of(file)?)?;
        if cx.cage.fds.is_watched() {
            watched::before_growing(cx, file, len)?;
        }
        cx.blocking(|| root.again(file, |links, name| host::place::truncate(links, name, len)))
    };
    let on_host = |dir: Dir<'_>, path: &CStr| set(root.open(dir, path, OpenFlags::O_PATH, 0)?.dir());
    cx.act(cx.here(), path, Last::Follow, on_host, |reached| match reached {
        Reached::Place(place) if place.is_directory() => Err(Errno::EISDIR),
        Reached::Place(place) => set(place.memory(cx).ok_or(Errno::EACCES)?.1.dir()),
        Reached::File(file) if matches!(file.kind, Kind::Named(_)) => set(file.dir()),
        Reached::File(_) => Err(Errno::EACCES),
        _ => Err(Errno::ENOENT),
    })
}

/// ftruncate(2)
pub(crate) fn ftruncate(cx: &Ctx<'_>, fd: Fd, len: Off) -> Result<()> {
    let len = length(len)?;
    // The limit is that of the cage the call acts on, whosever descriptor it is.
    if cx.cage.fds.is_watched() {
        watched::before_growing(cx, cx.file(fd)?.host(), len)?;
    }
    rustix::fs::ftruncate(cx.host_fd(fd)?.as_fd(), len).map_err(host::errno)
}

/// fallocate(2)
pub(crate) fn fallocate(cx: &Ctx<'_>, fd: Fd, mode: FallocateMode, offset: Off, len: Off) -> Result<()> {
    let file = cx.file(fd)?;
    let (offset, len) = (length(offset)?, length(len)?);
    if cx.cage.fds.is_watched() {
        watched::before_growing(cx, file.host(), offset.saturating_add(len))?;
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

/// sync(2): of the file systems that hold the root and what is mounted in it.
pub(crate) fn sync(cx: &Ctx<'_>) -> Result<()> {
    let root = &cx.kernel.root;
    let flags = (rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK).bits();
    let paths = std::iter::once(&b"/"[..]).chain(root.mounted().iter().map(|(path, _)| &path[..]));
    for name in paths.filter_map(|path| CString::new(path).ok()) {
        if let Ok(found) = root.open(root.top(), &name, flags, 0) {
            let _ = rustix::fs::syncfs(found);
        }
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
