//! What there is to know of a file.

use std::os::fd::AsFd;

use lind_abi::flags::{AccessFlags, AccessMode, AtFlags, StatxMask};
use lind_abi::layout::{Stat, Statfs, Statx};
use lind_abi::{DirFd, Errno, Fd, Out, Path, Result};
use rustix::fs::{Mode, OFlags};

use crate::call::Ctx;
use crate::host;
use crate::mem::PathBytes;
use crate::root::Last;

/// AT_STATX_SYNC_TYPE
const SYNC: u32 = AtFlags::AT_STATX_FORCE_SYNC | AtFlags::AT_STATX_DONT_SYNC;

/// stat(2)
pub(crate) fn stat(cx: &Ctx<'_>, path: Path, buf: Out<Stat>) -> Result<()> {
    newfstatat(cx, cx.here(), path, buf, AtFlags(0))
}

/// lstat(2)
pub(crate) fn lstat(cx: &Ctx<'_>, path: Path, buf: Out<Stat>) -> Result<()> {
    newfstatat(cx, cx.here(), path, buf, AtFlags(AtFlags::AT_SYMLINK_NOFOLLOW))
}

/// fstat(2)
pub(crate) fn fstat(cx: &Ctx<'_>, fd: Fd, buf: Out<Stat>) -> Result<()> {
    host::fs::fstat(cx.host_fd(fd)?.as_fd(), cx.output_of(buf)?)
}

/// newfstatat(2)
pub(crate) fn newfstatat(cx: &Ctx<'_>, dir: DirFd, path: Path, buf: Out<Stat>, flags: AtFlags) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_NO_AUTOMOUNT | AtFlags::AT_EMPTY_PATH) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let buf = cx.output_of(buf)?;
    if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        return host::fs::fstat(cx.itself(dir)?.as_fd(), buf);
    }
    let start = cx.start(dir, path)?;
    cx.kernel.root.view(start.as_fd(), path, last(flags), |dir, name, at| host::fs::stat(dir, name, buf, at.bits()))
}

/// statx(2)
pub(crate) fn statx(
    cx: &Ctx<'_>,
    dir: DirFd,
    path: Path,
    flags: AtFlags,
    mask: StatxMask,
    buf: Out<Statx>,
) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_NO_AUTOMOUNT | AtFlags::AT_EMPTY_PATH | SYNC) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let buf = cx.output_of(buf)?;
    let sync = flags.0 & SYNC;
    if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        return host::fs::statx(cx.itself(dir)?.as_fd(), c"", AtFlags::AT_EMPTY_PATH | sync, mask.0, buf);
    }
    let start = cx.start(dir, path)?;
    cx.kernel.root.view(start.as_fd(), path, last(flags), |dir, name, at| {
        host::fs::statx(dir, name, at.bits() | sync, mask.0, buf)
    })
}

/// access(2)
pub(crate) fn access(cx: &Ctx<'_>, path: Path, mode: AccessMode) -> Result<()> {
    faccessat2(cx, cx.here(), path, mode, AccessFlags(0))
}

/// faccessat(2): as the kernel has it, without flags.
pub(crate) fn faccessat(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: AccessMode) -> Result<()> {
    faccessat2(cx, dir, path, mode, AccessFlags(0))
}

/// faccessat2(2)
pub(crate) fn faccessat2(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: AccessMode, flags: AccessFlags) -> Result<()> {
    let known = AccessFlags::AT_SYMLINK_NOFOLLOW | AccessFlags::AT_EACCESS | AccessFlags::AT_EMPTY_PATH;
    if flags.beyond(known) || mode.beyond(AccessMode::R_OK | AccessMode::W_OK | AccessMode::X_OK) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let effective = flags.0 & AccessFlags::AT_EACCESS;
    if path.is_empty() && flags.has(AccessFlags::AT_EMPTY_PATH) {
        return host::fs::access(cx.itself(dir)?.as_fd(), c"", mode.0, AccessFlags::AT_EMPTY_PATH | effective);
    }
    let start = cx.start(dir, path)?;
    let last = if flags.has(AccessFlags::AT_SYMLINK_NOFOLLOW) { Last::NoFollow } else { Last::Follow };
    cx.kernel
        .root
        .view(start.as_fd(), path, last, |dir, name, at| host::fs::access(dir, name, mode.0, at.bits() | effective))
}

/// statfs(2)
pub(crate) fn statfs(cx: &Ctx<'_>, path: Path, buf: Out<Statfs>) -> Result<()> {
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let start = cx.start(cx.here(), path)?;
    let file = cx.kernel.root.open(start.as_fd(), path, OFlags::PATH.bits(), Mode::empty().bits())?;
    host::fs::statfs(file.as_fd(), cx.output_of(buf)?)
}

/// fstatfs(2)
pub(crate) fn fstatfs(cx: &Ctx<'_>, fd: Fd, buf: Out<Statfs>) -> Result<()> {
    host::fs::statfs(cx.host_fd(fd)?.as_fd(), cx.output_of(buf)?)
}

/// Whether a final symbolic link is followed.
pub(super) fn last(flags: AtFlags) -> Last {
    if flags.has(AtFlags::AT_SYMLINK_NOFOLLOW) { Last::NoFollow } else { Last::Follow }
}
