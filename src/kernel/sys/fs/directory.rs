//! Directories: making, reading, and working in one.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::{AccessFlags, AccessMode, AtFlags};
use lind_abi::{DirFd, Errno, Fd, Len, Mode, Out, Path, Result};
use rustix::fs::OFlags;

use super::name::unlinkat;
use crate::call::Ctx;
use crate::fd::Kind;
use crate::host;
use crate::mem::PathBytes;
use crate::root::Directory;

/// mkdir(2)
pub(crate) fn mkdir(cx: &Ctx<'_>, path: Path, mode: Mode) -> Result<()> {
    mkdirat(cx, cx.here(), path, mode)
}

/// mkdirat(2)
pub(crate) fn mkdirat(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: Mode) -> Result<()> {
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let start = cx.start(dir, path)?;
    // mkdir(2) looks at the permission bits and the sticky bit.
    let mode = rustix::fs::Mode::from_raw_mode(mode.0 & !cx.cage.umask.load(Ordering::Relaxed) & 0o1777);
    cx.kernel.root.parent(start.as_fd(), path, |dir, name| rustix::fs::mkdirat(dir, name, mode).map_err(host::errno))
}

/// rmdir(2)
pub(crate) fn rmdir(cx: &Ctx<'_>, path: Path) -> Result<()> {
    unlinkat(cx, cx.here(), path, AtFlags(AtFlags::AT_REMOVEDIR))
}

/// getdents64(2)
pub(crate) fn getdents64(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len) -> Result<usize> {
    let in_use = cx.host_fd(fd)?;
    // The host's type of this length is unsigned int; more than a guest's memory cannot be meant.
    let len = Len(len.0 & u64::from(u32::MAX));
    host::fs::getdents(in_use.as_fd(), cx.output(buf, len)?)
}

/// chdir(2)
pub(crate) fn chdir(cx: &Ctx<'_>, path: Path) -> Result<()> {
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let start = cx.start(cx.here(), path)?;
    enter(cx, start.as_fd(), path)
}

/// fchdir(2)
pub(crate) fn fchdir(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    let file = cx.file(fd)?;
    match file.kind {
        Kind::Named => enter(cx, file.host(), c"."),
        _ => Err(Errno::ENOTDIR),
    }
}

/// Makes a directory the cage's own, if it may be searched.
fn enter(cx: &Ctx<'_>, dir: BorrowedFd<'_>, path: &std::ffi::CStr) -> Result<()> {
    let directory = cx.kernel.root.open(dir, path, (OFlags::PATH | OFlags::DIRECTORY).bits(), 0)?;
    host::fs::access(directory.as_fd(), c"", AccessMode::X_OK, AccessFlags::AT_EMPTY_PATH | AccessFlags::AT_EACCESS)?;
    cx.cage.cwd.store(Arc::new(Directory::new(directory)));
    Ok(())
}

/// getcwd(2): the length with its NUL.
pub(crate) fn getcwd(cx: &Ctx<'_>, buf: Out<u8>, len: Len) -> Result<usize> {
    let cwd = cx.cage.cwd.load();
    let path = cx.kernel.root.path_of(cwd.as_fd())?;
    let path = path.as_bytes_with_nul();
    if path.len() as u64 > len.0 {
        return Err(Errno::ERANGE);
    }
    cx.copy_out(buf, path)?;
    Ok(path.len())
}

/// umask(2)
#[inline]
pub(crate) fn umask(cx: &Ctx<'_>, mask: Mode) -> Result<Mode> {
    Ok(Mode(cx.cage.umask.swap(mask.0 & 0o777, Ordering::Relaxed)))
}
