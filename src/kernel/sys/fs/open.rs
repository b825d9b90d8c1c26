//! Opening files.

use std::os::fd::AsFd;

use lind_abi::flags::OpenFlags;
use lind_abi::{DirFd, Mode, NewFd, Path, Result};

use crate::call::Ctx;
use crate::fd::{File, Kind};
use crate::mem::PathBytes;

/// open(2)
pub(crate) fn open(cx: &Ctx<'_>, path: Path, flags: OpenFlags, mode: Mode) -> Result<NewFd> {
    openat(cx, DirFd { number: libc::AT_FDCWD, cage: path.cage }, path, flags, mode)
}

/// openat(2)
pub(crate) fn openat(cx: &Ctx<'_>, dir: DirFd, path: Path, flags: OpenFlags, mode: Mode) -> Result<NewFd> {
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let cage = cx.owner(dir.cage)?;
    let mode = mode.0 & !cage.umask.load(std::sync::atomic::Ordering::Relaxed) & 0o7777;
    let cwd = cage.cwd.load();
    let host = cx.kernel.root.open(cwd.as_fd(), path, flags.0, mode)?;
    let stat = rustix::fs::fstat(&host).map_err(crate::host::errno)?;
    let directory = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    let kind = if directory { Kind::Directory } else { Kind::Host };
    let number = cx.cage.fds.add(File::new(host, kind), flags.has(OpenFlags::O_CLOEXEC))?;
    Ok(NewFd(number))
}
